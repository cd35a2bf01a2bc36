"""Blobs in a bucket: states, plans, logs and outputs of a service are on a real S3 server, sealed."""

import shutil
import subprocess

import pytest

from lib import web
from lib.buckets import SECRET, S3, AzureStorage, GoogleStorage, Trouble, run_program
from lib.dayfly import DAYFLY, DEADLINE, ROOT, Server, wait_for

MODULE = """
resource "terraform_data" "it" { input = "the-content-of-the-state" }
output "it" { value = terraform_data.it.output }
"""


@pytest.fixture
def s3(tmp_path):
    with S3(tmp_path / "s3") as server:
        yield server


def serve(home, s3, **keys):
    home.env.update(s3.env)
    return Server(home, config=s3.config(**keys))


def moving(home, s3, prefix="", **keys):
    home.env.update(s3.env)
    return Server(home, config=s3.config(prefix, **keys).replace("blobs:\n", "blobs:\n  move: true\n"))


def provision(home, name="net", **kwargs):
    home.module(name, MODULE)
    return home.dayfly("run", name, "--auto-approve", cwd=home.directory, **kwargs)


def fails_to_serve(home, s3, **keys):
    """What a service says that does not start."""
    server = serve(home, s3, **keys)
    try:
        server.start()
    except AssertionError:
        return server.log.read_text()
    server.stop()
    raise AssertionError("it started")


@pytest.fixture(params=[S3, GoogleStorage, AzureStorage])
def bucket(request, tmp_path):
    with request.param(tmp_path / "bucket") as server:
        yield server


def test_this_backend_does_what_every_backend_does(bucket):
    run_program(bucket)


def test_what_was_acknowledged_is_there_once_whatever_happens_on_the_way(s3):
    with Trouble(s3.address, share=0.12, seed=1) as way:
        run_program(s3, "trouble", url=way.url)
    assert all(way.met.values()), way.met


def test_nor_is_anything_lost_on_a_bad_way_to_google(tmp_path):
    """Nothing in a request says what its body must be: bytes that change on the way are TLS's to find."""
    with GoogleStorage(tmp_path / "gs") as server, Trouble(server.address, share=0.12, seed=1) as way:
        way.KINDS = tuple(kind for kind in way.KINDS if kind != "changed")
        run_program(server, "trouble", url=way.url)
        assert way.met["after"] and way.met["before"]


def test_nor_on_a_bad_way_to_azure(tmp_path):
    with AzureStorage(tmp_path / "azure") as server, Trouble(server.address, share=0.06, seed=1) as way:
        run_program(server, "trouble", url=f"{way.url}/{server.account}")
        assert all(way.met.values()), way.met


def test_what_somebody_did_to_an_object_of_azure_is_told_at_once(tmp_path):
    with AzureStorage(tmp_path / "azure") as server:
        server.env = {"AZURE_STORAGE_SAS_TOKEN": server.sas()}
        run_program(server, "others")


class Liar(web.Handler):
    """Adds names to each list that lead to another bucket, or out of the prefix, and remembers what is asked."""

    NAMES = ("chunks/../../other/victim", "chunks/v?versionId=null", "chunks/v#x", "chunks/" + "v" * 2000)

    def pass_on(self):
        owner, body = self.server.owner, self.body()
        owner.asked.append(f"{self.command} {self.path}")
        status, content, headers = self.forward(owner.target, body)
        if "list-type=2" in self.path:
            lies = "".join(f"<Contents><Key>{name}</Key><Size>9</Size><LastModified>2020-01-01T00:00:00Z</LastModified></Contents>" for name in self.NAMES)
            content = content.replace(b"</ListBucketResult>", lies.encode() + b"</ListBucketResult>")
        self.answer(status, content, **headers)

    do_GET = do_PUT = do_DELETE = pass_on


def test_names_that_a_list_makes_up_lead_nowhere(home, s3):
    """An hour old, they look like what a killed writer left."""
    with web.Server(Liar) as liar:
        liar.target, liar.asked = s3.address, []
        with serve(home, s3, endpoint=liar.url):
            provision(home)
            home.dayfly("state", "list", "net")
        assert any("list-type=2" in asked and "chunks" in asked for asked in liar.asked)
        removed = [asked for asked in liar.asked if asked.startswith("DELETE")]
        assert removed and all(" /blobs/" in asked and ".." not in asked and "/v" not in asked for asked in removed), removed


def test_junk_in_the_bucket_does_not_push_out_real_states(home, s3):
    with serve(home, s3):
        provision(home)
    home.env["DAYFLY_RETENTION_STATE_VERSIONS"] = "1"
    place = next(s3.files.glob("heads/state/*"))
    real = sorted(p.name for p in place.iterdir())
    for n in range(3):
        (place / f"9000000{n}.state").write_text("junk")
    with serve(home, s3) as server:
        assert "State" not in {item["kind"] for item in home.json("gc")["items"]}
        assert "stay:" in server.log.read_text()
    assert set(real) <= {p.name for p in place.iterdir() if p.stat().st_size}


def test_a_service_may_have_its_blobs_with_google(home, tmp_path):
    with GoogleStorage(tmp_path / "gs") as server, Server(home, config=server.config()):
        provision(home)
        assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
        assert "No changes" in provision(home).stdout


def test_a_service_may_have_its_blobs_with_azure_by_a_shared_access_signature(home, tmp_path):
    pair = web.self_signed(tmp_path, "localhost", "IP:127.0.0.1,DNS:localhost")
    with AzureStorage(tmp_path / "azure", pair=pair) as server:
        home.env["AZURE_STORAGE_SAS_TOKEN"] = server.sas()
        with Server(home, config=server.config()) as service:
            provision(home)
            assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
            assert "No changes" in provision(home).stdout
            assert "sig=" not in service.log.read_text()
        home.env["AZURE_STORAGE_SAS_TOKEN"] = server.sas("r")
        with pytest.raises(AssertionError, match="(?s)blobs.location: open azblob://dayflytest/blobs/prod.*HTTP 403.*; the identity needs the role "
                                                 "Storage Blob Data Contributor.*the permissions read, add, create, write, delete and list") as said:
            Server(home, config=server.config()).start()
        assert "sig=" not in str(said.value)


@pytest.mark.skipif(not shutil.which("faketime"), reason="no faketime")
@pytest.mark.parametrize("offset", ["-20m", "+20m"])
def test_a_clock_that_is_wrong_by_twenty_minutes_does_not_matter(s3, offset):
    """The server's own refusal tells its time."""
    run_program(s3, "clock", prefix=("faketime", "-f", offset), build=ROOT / "build")


def test_a_run_leaves_everything_in_the_bucket_and_nothing_readable(home, s3):
    with serve(home, s3, prefix="prod/dayfly") as server:
        provision(home)
        assert home.json("outputs", "net")["it"]["value"] == "the-content-of-the-state"
        assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
        assert "Apply complete" in home.dayfly("logs", "net").stdout
        here = [str(p.relative_to(server.data / "blobs")) for p in (server.data / "blobs").rglob("*") if p.is_file()]
        assert sorted(here) == ["data/installation", "data/location"]  # which say whose they are, and where
    names = s3.objects()
    assert all(name.startswith("prod/dayfly/") for name in names) and any("state" in name for name in names)
    assert not any(b"the-content" in (s3.files / name).read_bytes() for name in names)
    assert not any("probe/" in name for name in names)


@pytest.mark.parametrize("more", [[], ["--events"]], ids=["log", "events"])
def test_logs_say_that_the_bucket_does_not_answer(home, s3, more):
    with serve(home, s3):
        provision(home)
        s3.stop()
        asked = home.dayfly("logs", "net", *more, code=None)
        assert asked.returncode and asked.stdout == "" and s3.address in asked.stderr, asked.stderr
        assert "the log of net-1 cannot be read now: the storage does not answer" in asked.stderr
        followed = subprocess.Popen([DAYFLY, "logs", "--follow", "net", *more], env=home.env, stderr=subprocess.PIPE, text=True)
        assert "the storage does not answer" in followed.stderr.readline()
        s3.start()
        assert followed.wait(DEADLINE) == 0


def test_a_bucket_may_stand_before_the_name_of_its_host_and_trust_a_ca_of_its_own(home, tmp_path):
    pair = web.self_signed(tmp_path, "localhost", "DNS:localhost,DNS:blobs.localhost")
    with S3(tmp_path / "s3", pair=pair, domain="localhost") as server:
        with serve(home, server, pathStyle="false", caFile=pair[0]):
            provision(home)
            assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
        said = fails_to_serve(home, server, pathStyle="false")
        assert "blobs.location: open s3://blobs" in said and "certificate" in said


def test_a_service_that_was_killed_goes_on_with_what_is_in_the_bucket(home, s3):
    server = serve(home, s3)
    with server:
        provision(home)
        server.kill()
        with server.start():
            assert "No changes" in provision(home).stdout
            home.dayfly("destroy", "net", "--auto-approve")
            assert home.dayfly("state", "pull", "net", code=None).stdout.count("terraform_data") == 0


@pytest.mark.parametrize("kind", [S3, GoogleStorage, AzureStorage])
def test_a_page_of_a_proxy_does_not_say_that_there_is_no_state(home, tmp_path, kind):
    """The tool takes 404 for an answer, and a plan would create everything again."""
    with kind(tmp_path / "bucket") as store, Trouble(store.address, share=0, seed=1) as way:
        way.KINDS = ("absent",)
        home.env.update(store.env)
        with Server(home, config=store.config().replace(f"http://{store.address}", way.url)) as server:
            provision(home)
            way.share = 1
            for part in ("", "/lock"):
                status, _, said = server.request("GET", "/v1/executors/net/state" + part)
                assert status == 503 and b"HTTP 404" in said, (status, said)
            way.share = 0
            assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout


@pytest.mark.parametrize("kind", [S3, GoogleStorage, AzureStorage])
def test_a_bucket_that_somebody_deletes_is_no_bucket_without_states(home, tmp_path, kind):
    """The tool takes 404 for an answer, and a plan would create everything again."""
    with kind(tmp_path / "bucket") as store:
        home.env.update(store.env)
        with Server(home, config=store.config()) as server:
            provision(home)
            store.lose_bucket()
            for part in ("", "/lock"):
                status, _, said = server.request("GET", "/v1/executors/net/state" + part)
                assert status == 503, (status, said)


def test_a_store_that_is_away_for_a_while_delays_a_run_and_loses_nothing(home, s3):
    with serve(home, s3) as server:
        provision(home, "first")
        s3.stop()
        home.module("second", MODULE)
        run = home.popen(DAYFLY, "run", "second", "--auto-approve", cwd=home.directory)
        wait_for("the step to begin", lambda: any(s["spec"]["runRef"]["name"].startswith("second") for s in server.get("/v1/taskactions")["items"]))
        s3.start()
        assert run.wait(timeout=DEADLINE * 2) == 0
        assert home.json("outputs", "second")["it"]["value"] == "the-content-of-the-state"


def test_without_its_location_a_service_does_not_start_as_if_there_were_no_states(home, s3):
    with serve(home, s3):
        provision(home)
    server = Server(home, config="{}\n")
    with pytest.raises(AssertionError, match="ended with"):
        server.start()
    assert "blobs.location: is not set, and states, plans and logs are in s3://blobs: set it to that" in server.log.read_text()


def test_a_service_with_states_on_disk_does_not_start_with_an_empty_bucket(home, s3):
    with Server(home):
        provision(home)
    assert "blobs.move: true takes them there" in fails_to_serve(home, s3)
    assert s3.objects() == []


def test_blobs_are_taken_along_to_a_bucket_and_to_another_one(home, s3):
    with Server(home):
        provision(home)
    for prefix in ("first", "second"):
        with moving(home, s3, prefix) as server:
            assert "the-content-of-the-state" in home.dayfly("state", "pull", "net").stdout
            assert "Apply complete" in home.dayfly("logs", "net").stdout
            assert f"blobs: all are in s3://blobs/{prefix}" in server.log.read_text()
    with serve(home, s3, prefix="second"):
        assert "No changes" in provision(home).stdout


def test_a_move_that_was_killed_begins_again_and_nothing_is_lost(home, s3):
    with Server(home):
        provision(home)
    with Trouble(s3.address, share=1, seed=1) as way:
        way.KINDS = ("after",)  # each request is executed, and none is answered
        server = moving(home, s3, endpoint=way.url)
        server.process = home.popen(DAYFLY, "serve", "--data-directory", server.data, *server.args, stderr=subprocess.DEVNULL)
        wait_for("an object in the bucket", s3.objects)
        server.kill()
    assert "blobs.move: true takes them there" in fails_to_serve(home, s3)
    with moving(home, s3):
        assert "No changes" in provision(home).stdout


def test_a_place_belongs_to_one_installation_until_another_one_takes_it_over(home, s3):
    with serve(home, s3, prefix="prod"):
        provision(home)
    mark = s3.files / "prod" / "owner"
    first = mark.read_text().split()[0]

    def other(more=""):
        return Server(home, config=s3.config("prod").replace("blobs:\n", "blobs:\n" + more), data=home.directory / "other")

    with pytest.raises(AssertionError, match=f"{first}, not to {'f' * 32}, which blobs.takeOver names, and this is "):
        other(f"  takeOver: {'f' * 32}\n").start()
    for more in ("", f"  takeOver: {'0' * 32}\n"):
        with pytest.raises(AssertionError, match=f"ended with 3:[^$]*s3://blobs/prod belongs to the dayfly installation {first}, .*blobs.takeOver: {first}"):
            other(more).start()
    assert mark.read_text().split()[0] == first
    with other(f"  takeOver: {first}\n"):
        assert mark.read_text().split()[0] != first
    assert "belongs to the dayfly installation" in fails_to_serve(home, s3, prefix="prod")
    mark.unlink()  # as in a place of an older version
    with serve(home, s3, prefix="prod"):
        assert mark.read_text().split()[0] == first and "No changes" in provision(home).stdout


def test_a_service_whose_place_was_taken_over_removes_and_writes_nothing_more(home, s3):
    with serve(home, s3, prefix="prod") as former:
        provision(home)
        first, mine = (s3.files / "prod/owner").read_text().split()[0], (former.url, former.token())
        config = s3.config("prod").replace("blobs:\n", f"blobs:\n  takeOver: {first}\n")
        with Server(home, config=config, data=home.directory / "other"):
            provision(home, "of-the-second")
            second = (s3.files / "prod/owner").read_text().split()[0]
            before = s3.objects()
            home.env["DAYFLY_SERVER"], home.env["DAYFLY_TOKEN"] = mine
            told = f"installation {second} took s3://blobs/prod over from this one, {first},"
            for args in ((), ("--dry-run",), ("--orphans",)):
                said = home.dayfly("gc", *args, code=None)
                assert said.returncode == 1 and told in said.stderr and f"blobs.takeOver: {second}" in said.stderr, said
            said = home.dayfly("run", "net", "--auto-approve", cwd=home.directory, code=None)
            assert said.returncode and "StorageTakenOver" in said.stdout, said
            assert "Another installation took the bucket" in home.dayfly("why", "net-2").stdout
            status, _, body = former.request("GET", "/readyz")
            assert status == 503 and "[-] blobs: the dayfly " + told in body.decode()
            wait_for("its line of the log", lambda: f'"level":"error","component":"spawner","msg":"blobs: s3://blobs/prod cannot be written: the dayfly {told}' in former.log.read_text())
            assert former.log.read_text().count("s3://blobs/prod cannot be written: ") == 1
            assert s3.objects() == before
    config = s3.config("prod").replace("blobs:\n", f"blobs:\n  takeOver: {second}\n")
    with Server(home, config=config):
        assert "No changes" in provision(home).stdout


def test_a_bucket_that_is_not_there_and_keys_that_are_wrong_are_told(home, s3):
    home.env.update(s3.env)
    file = home.directory / "doctor.yaml"

    def doctor(code, **keys):
        file.write_text(s3.config("x", **keys))
        return home.dayfly("doctor", "--config", file, code=code).stdout

    assert "[ok]   bucket: s3://blobs/x takes, gives back, lists and removes an object" in doctor(0) and s3.objects() == []
    said = doctor(1, region="eu-north-1")
    assert "[FAIL] bucket: blobs.location: s3://blobs/x: PUT probe/" in said and "a bucket that exists" not in said
    said = doctor(1, endpoint="minio:9000")
    assert 'bucket: blobs.s3.endpoint: "minio:9000" is not an endpoint, which begins with https://' in said
    said = doctor(1, pathStyle="false")
    assert "bucket: blobs.s3.pathStyle: must be true" in said and s3.url in said
    assert "doctor must reach it as the service does" in doctor(1, endpoint="http://127.0.0.1:1")
    said = fails_to_serve(home, s3, prefix="x", region="eu-north-1")
    assert "set blobs.s3.region to us-east-1" in said
    s3.env["AWS_SECRET_ACCESS_KEY"] = "not-the-key"
    said = fails_to_serve(home, s3)
    home.env.update(s3.env)
    assert "the keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment" in doctor(1)
    assert "blobs.location: open s3://blobs" in said and "SignatureDoesNotMatch" in said and "the keys come from AWS_ACCESS_KEY_ID" in said
    assert SECRET not in said and "not-the-key" not in said
    file.write_text(s3.config("x").replace("s3://blobs", "s3://no-such-bucket"))
    home.env["AWS_SECRET_ACCESS_KEY"] = SECRET
    assert "NoSuchBucket" in (said := home.dayfly("doctor", "--config", file, code=1).stdout) and "name a bucket that exists in blobs.location" in said


def test_a_bucket_that_may_only_be_read_is_told_with_the_rights_that_are_needed(home, tmp_path):
    with S3(tmp_path / "s3", read_only=True) as s3:
        said = fails_to_serve(home, s3)
    assert "blobs.location: open s3://blobs: PUT probe/" in said and "HTTP 403 AccessDenied" in said
    assert "the keys need s3:GetObject, s3:PutObject and s3:DeleteObject on its objects, and s3:ListBucket on the bucket" in said
