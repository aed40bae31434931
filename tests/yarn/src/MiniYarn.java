import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;
import org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler;

/**
 * A YARN cluster on loopback, driven by lines on standard input: `submit QUEUE MB VCORES CONTAINERS TAG`,
 * `finish APPID`, `stop-rm`, `start-rm`, `quit`. What happens is told in lines of JSON on standard output.
 *
 * Arguments: `capacity` or `fair`, and an empty folder for what is written; the scheduler's file is found on the
 * class path. One ResourceManager and two NodeManagers of 8 GiB and 16 vcores each. The
 * ResourceManager keeps its port and its applications when it is stopped and started. The cluster ends when
 * standard input does.
 */
public final class MiniYarn {
    private static final int NODES = 2;
    private static final int NODE_MEGABYTES = 8192;
    private static final int NODE_VCORES = 16;
    private static final long CONNECT_MILLISECONDS = 60_000;

    private final PrintStream answers;
    private final YarnConfiguration conf;
    // false: no web pages of NodeManagers, which in one process take the place of the ResourceManager's
    private final MiniYARNCluster cluster = new MiniYARNCluster("rm-service", NODES, 1, 1, false);
    private final Map<String, HeldApplication> applications = new ConcurrentHashMap<>();
    private final ExecutorService background = Executors.newCachedThreadPool();

    private MiniYarn(PrintStream answers, YarnConfiguration conf) {
        this.answers = answers;
        this.conf = conf;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever Hadoop prints is no answer
        Path folder = Path.of(arguments[1]).toAbsolutePath();
        MiniYarn yarn = new MiniYarn(answers, configuration(arguments[0], folder));
        try {
            yarn.start();
            yarn.obey(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        } catch (Exception error) {
            error.printStackTrace();
            yarn.tell("failed", "reason", String.valueOf(error));
        }
        Runtime.getRuntime().halt(0); // an orderly end waits long for applications; the containers end by themselves
    }

    private void start() throws Exception {
        cluster.init(conf);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(CONNECT_MILLISECONDS)) {
            throw new IOException("the NodeManagers did not connect");
        }
        tell("ready", "web", "http://" + conf.get(YarnConfiguration.RM_WEBAPP_ADDRESS));
    }

    private void obey(BufferedReader orders) throws IOException {
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] words = line.strip().split(" +");
            if (words[0].equals("quit")) {
                return;
            }
            try {
                obey(words);
            } catch (Exception error) {
                error.printStackTrace();
                tell("failed", "order", line, "reason", String.valueOf(error));
            }
        }
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "submit":
                submit(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                        Integer.parseInt(words[4]), words[5]);
                break;
            case "finish":
                applications.remove(words[1]).finish();
                tell("finished", "id", words[1]);
                break;
            case "stop-rm":
                cluster.stopResourceManager(0);
                tell("rm-stopped");
                break;
            case "start-rm":
                cluster.restartResourceManager(0);
                cluster.waitForNodeManagersToConnect(CONNECT_MILLISECONDS);
                tell("rm-started");
                break;
            default:
                throw new IllegalArgumentException("unknown order " + words[0]);
        }
    }

    /** The submission waits for the ResourceManager, so it must not keep the next order waiting. */
    private void submit(String queue, int megabytes, int vcores, int containers, String tag) {
        background.execute(() -> {
            HeldApplication application = new HeldApplication(conf, queue, tag,
                    (id, held) -> tell("allocated", "id", id, "tag", tag, "containers", String.valueOf(held)));
            try {
                String id = application.submit();
                applications.put(id, application);
                tell("submitted", "id", id, "tag", tag);
                application.hold(megabytes, vcores, containers);
            } catch (Exception error) {
                error.printStackTrace();
                Throwable reason = error.getCause() == null ? error : error.getCause();
                tell("failed", "tag", tag, "reason", String.valueOf(reason));
            }
        });
    }

    private synchronized void tell(String event, String... pairs) {
        StringBuilder text = new StringBuilder("{\"event\": ").append(quoted(event));
        for (int i = 0; i < pairs.length; i += 2) {
            text.append(", ").append(quoted(pairs[i])).append(": ").append(quoted(pairs[i + 1]));
        }
        answers.println(text.append('}'));
        answers.flush();
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c < ' ' || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
        }
        return out.append('"').toString();
    }

    private static YarnConfiguration configuration(String scheduler, Path folder) throws IOException {
        YarnConfiguration conf = new YarnConfiguration();
        if (scheduler.equals("fair")) {
            conf.setClass(YarnConfiguration.RM_SCHEDULER, FairScheduler.class, Object.class);
        } else {
            conf.setClass(YarnConfiguration.RM_SCHEDULER, CapacityScheduler.class, Object.class);
        }
        conf.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 128);
        conf.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, NODE_MEGABYTES);
        conf.setInt(YarnConfiguration.NM_VCORES, NODE_VCORES);
        beQuickAndCareless(conf);
        stayOnLoopback(conf);
        keep(conf, folder);
        return conf;
    }

    private static void beQuickAndCareless(YarnConfiguration conf) {
        conf.setLong(YarnConfiguration.RM_NM_HEARTBEAT_INTERVAL_MS, 100);
        conf.setLong(YarnConfiguration.RM_WORK_PRESERVING_RECOVERY_SCHEDULING_WAIT_MS, 0);
        conf.setLong(YarnConfiguration.RESOURCEMANAGER_CONNECT_RETRY_INTERVAL_MS, 200);
        conf.setBoolean(YarnConfiguration.NM_DISK_HEALTH_CHECK_ENABLE, false);
        conf.setBoolean(YarnConfiguration.TIMELINE_SERVICE_ENABLED, false);
        conf.setInt(CommonConfigurationKeysPublic.IPC_CLIENT_CONNECT_MAX_RETRIES_KEY, 1);
    }

    /** Fixed ports, so that a ResourceManager that comes back is found where it was. */
    private static void stayOnLoopback(YarnConfiguration conf) throws IOException {
        conf.setBoolean(YarnConfiguration.YARN_MINICLUSTER_FIXED_PORTS, true);
        conf.setBoolean(YarnConfiguration.YARN_MINICLUSTER_USE_RPC, true);
        String[] names = {
            YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_ADMIN_ADDRESS,
            YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS,
            YarnConfiguration.RM_WEBAPP_ADDRESS};
        List<ServerSocket> sockets = new ArrayList<>(); // all open until the last is chosen: no port twice
        for (String name : names) {
            ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            sockets.add(socket);
            conf.set(name, "127.0.0.1:" + socket.getLocalPort());
        }
        for (ServerSocket socket : sockets) {
            socket.close();
        }
    }

    private static void keep(YarnConfiguration conf, Path folder) throws IOException {
        Path state = Files.createDirectories(folder.resolve("state"));
        conf.set("hadoop.tmp.dir", folder.resolve("tmp").toString());
        conf.setBoolean(YarnConfiguration.RECOVERY_ENABLED, true);
        conf.setClass(YarnConfiguration.RM_STORE, FileSystemRMStateStore.class, Object.class);
        conf.set(YarnConfiguration.FS_RM_STATE_STORE_URI, state.toUri().toString());
    }
}
