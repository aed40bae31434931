import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BiConsumer;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.UpdatedContainer;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.NMTokenCache;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.client.api.async.AMRMClientAsync;
import org.apache.hadoop.yarn.exceptions.YarnException;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/**
 * An application of the user alice whose master lives here, unmanaged by YARN. Its containers run a loop that
 * does nothing until it is finished or this program is gone.
 */
final class HeldApplication extends AMRMClientAsync.AbstractCallbackHandler {
    private static final String USER = "alice";
    private static final int HEARTBEAT_MILLISECONDS = 100;
    private static final int POLL_MILLISECONDS = 20;

    private final Configuration conf;
    private final String queue;
    private final String tag;
    private final BiConsumer<String, Integer> allAllocated;
    private final UserGroupInformation user = UserGroupInformation.createRemoteUser(USER);
    private final Set<ContainerId> held = ConcurrentHashMap.newKeySet();
    private final NMTokenCache tokens = new NMTokenCache();

    private ApplicationId id;
    private AMRMClientAsync<ContainerRequest> master;
    private NMClient nodes;
    private volatile int wanted;
    private final Queue<ContainerRequest> open = new ConcurrentLinkedQueue<>();

    HeldApplication(Configuration conf, String queue, String tag, BiConsumer<String, Integer> allAllocated) {
        this.conf = conf;
        this.queue = queue;
        this.tag = tag;
        this.allAllocated = allAllocated;
    }

    /** Submit it, and return its id once its master may register. */
    String submit() throws Exception {
        user.doAs((PrivilegedExceptionAction<Void>) () -> {
            try (YarnClient client = YarnClient.createYarnClient()) {
                client.init(conf);
                client.start();
                YarnClientApplication application = client.createApplication();
                client.submitApplication(described(application.getApplicationSubmissionContext()));
                awaitAccepted(client);
                user.addToken(client.getAMRMToken(id));
            }
            return null;
        });
        return id.toString();
    }

    /** Ask for containers and keep them. */
    void hold(int megabytes, int vcores, int containers) throws Exception {
        wanted = containers;
        user.doAs((PrivilegedExceptionAction<Void>) () -> {
            nodes = NMClient.createNMClient();
            nodes.setNMTokenCache(tokens);
            nodes.cleanupRunningContainersOnStop(false);
            nodes.init(conf);
            nodes.start();
            AMRMClient<ContainerRequest> client = AMRMClient.createAMRMClient();
            client.setNMTokenCache(tokens);
            master = AMRMClientAsync.createAMRMClientAsync(client, HEARTBEAT_MILLISECONDS, this);
            master.init(conf);
            Resource each = Resource.newInstance(megabytes, vcores);
            for (int i = 0; i < containers; i++) {
                ContainerRequest request = new ContainerRequest(each, null, null, Priority.newInstance(1));
                open.add(request);
                client.addContainerRequest(request);
            }
            // All requests before the first heartbeat: a count that grows crosses what was given meanwhile.
            master.start();
            master.registerApplicationMaster("localhost", -1, "");
            return null;
        });
    }

    /** Give everything back; it is over when this returns. */
    void finish() throws Exception {
        user.doAs((PrivilegedExceptionAction<Void>) () -> {
            master.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
            master.stop();
            nodes.stop();
            try (YarnClient client = YarnClient.createYarnClient()) {
                client.init(conf);
                client.start();
                while (client.getApplicationReport(id).getFinishTime() == 0) {
                    Thread.sleep(POLL_MILLISECONDS);
                }
            }
            return null;
        });
    }

    private ApplicationSubmissionContext described(ApplicationSubmissionContext context) {
        id = context.getApplicationId();
        context.setApplicationName("held for " + tag);
        context.setApplicationType("rm-test");
        context.setApplicationTags(Collections.singleton(tag));
        context.setQueue(queue);
        context.setUnmanagedAM(true);
        context.setResource(Resource.newInstance(128, 1));
        context.setAMContainerSpec(launching(":"));
        return context;
    }

    private void awaitAccepted(YarnClient client) throws Exception {
        while (true) {
            YarnApplicationState state = client.getApplicationReport(id).getYarnApplicationState();
            if (state == YarnApplicationState.FAILED || state == YarnApplicationState.KILLED) {
                throw new IOException(client.getApplicationReport(id).getDiagnostics());
            }
            if (state == YarnApplicationState.ACCEPTED && client.getAMRMToken(id) != null) {
                return;
            }
            Thread.sleep(POLL_MILLISECONDS);
        }
    }

    private static ContainerLaunchContext launching(String command) {
        return ContainerLaunchContext.newInstance(
                Map.of(), Map.of(), List.of(command), Map.of(), null, Map.of());
    }

    @Override
    public void onContainersAllocated(List<Container> containers) {
        String untilWeEnd = "while kill -0 " + ProcessHandle.current().pid() + "; do sleep 1; done 2>/dev/null";
        for (Container container : containers) {
            if (held.size() == wanted) { // asked again by a client that had to register again
                master.releaseAssignedContainer(container.getId());
                continue;
            }
            try {
                nodes.startContainer(container, launching(untilWeEnd));
                held.add(container.getId());
            } catch (YarnException | IOException error) {
                error.printStackTrace();
            }
        }
        if (held.size() == wanted && !open.isEmpty()) {
            open.forEach(master::removeContainerRequest); // only now: a count sent earlier crosses what is on its way
            open.clear();
            allAllocated.accept(id.toString(), wanted);
        }
    }

    @Override
    public void onContainersCompleted(List<ContainerStatus> statuses) {
        statuses.forEach(status -> held.remove(status.getContainerId()));
    }

    @Override
    public void onContainersUpdated(List<UpdatedContainer> containers) {
        // the amounts of ours never change
    }

    @Override
    public void onShutdownRequest() {
        System.err.println(id + " is told to end");
    }

    @Override
    public void onNodesUpdated(List<NodeReport> updated) {
        // all nodes are alike
    }

    @Override
    public void onError(Throwable error) {
        error.printStackTrace();
    }

    @Override
    public float getProgress() {
        return 0;
    }
}
