"""An AWX as the contract describes it, with its rules for what may be created and launched.

"4.2" and "7.2" name sections of the contract, "1.6" the one of its second reading; "row" is a row of the table there.
The test says what there is (`template`, `credential`), reads what was asked (`asked`), moves jobs (`move`) or gives a
`run_job`, and breaks what it wants (`break_next`, `away`). `python3 lib/awx.py` asks it a few questions."""

import collections
import datetime
import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import lib.playbooks as playbooks
import lib.web as web

TOKEN = "test-token"
QUEUED = ("new", "pending", "waiting")
ENDED = ("successful", "failed", "error", "canceled")  # with "running": 7.2, row "job statuses"
LAUNCHED_KINDS = ("ssh", "vault", "cloud", "net", "kubernetes")  # 7.2, row "credential kind on launch"
FIELD_ID = re.compile(r"[a-zA-Z_]+[a-zA-Z0-9_]*")  # 7.2, row "field id"; 1.6
FIELD_MEMBERS = {"id", "label", "type", "secret", "multiline", "format", "choices", "help_text", "default", "ask_at_runtime"}
PAGE, LARGEST_PAGE = 25, 200  # 7.2, row "lists"
DISPLAYED = 1048576  # awx/settings/defaults.py, STDOUT_MAX_BYTES_DISPLAY

# What of a document is shown: a job has no result_stdout (7.2, row "job detail"; 1.6), a credential shows no inputs.
TEMPLATE = ("id", "type", "name", "organization", "ask_variables_on_launch", "ask_credential_on_launch", "survey_enabled")
JOB = ("id", "type", "name", "status", "failed", "created", "finished", "event_processing_finished", "job_template", "extra_vars")
TYPE = ("id", "type", "name", "kind", "managed", "inputs", "injectors")
CREDENTIAL = ("id", "type", "name", "organization", "credential_type")

Asked = collections.namedtuple("Asked", "method path body")  # path: as it was on the wire, not decoded
Fault = collections.namedtuple("Fault", "method path how")


class Refused(Exception):
    """Becomes an answer: 400, or another status."""

    def __init__(self, body, status=400):
        super().__init__(body)
        self.body, self.status = body, status


class Broken(Exception):
    """The connection ends without an answer."""


def shown(document, members):
    return {member: document[member] for member in members}


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def run_playbook(awx, job):
    awx.move(job["id"], "running")
    playbook = awx.templates[job["job_template"]]["playbook"]
    awx.move(job["id"], *playbooks.run(playbook, json.loads(job["extra_vars"]), awx.environment(job["id"])))


class AWX(web.Server):
    """`with AWX() as awx:` answers at awx.url. Everything below is behind awx.lock."""

    def __init__(self, token=TOKEN, pair=None, organizations=(1,)):
        self.lock = threading.RLock()
        self.token, self.organizations = token, set(organizations)
        self.templates, self.jobs, self.types, self.credentials = {}, {}, {}, {}
        self.last_id = collections.Counter()
        self.asked, self.faults, self.away = [], [], False
        self.silent = threading.Event()  # set: no request is answered until it is not
        self.waiting, self.most_waiting = 0, 0  # requests that are not answered, now and ever
        self.run_job = None  # (awx, job): called in a thread for each launched job; None: the test moves it
        for name, kind, fields in (
                ("Machine", "ssh", ("username", "password")), ("Vault", "vault", ("vault_password",)),
                # 7.2, row "built-in type"
                ("OpenShift or Kubernetes API Bearer Token", "kubernetes", ("host", "bearer_token", "ssl_ca_cert"))):
            inputs = {"fields": [{"id": field, "label": field, "type": "string"} for field in fields]}
            self.add(self.types, "credential_type", name=name, kind=kind, managed=True, inputs=inputs, injectors={})
        super().__init__(Handler, pair)

    # ---- what the test says ----

    def add(self, kept, what, **document):
        with self.lock:
            self.last_id[what] += 1
            kept[self.last_id[what]] = {"id": self.last_id[what], "type": what, **document}
            return kept[self.last_id[what]]

    def template(self, name, organization=1, credentials=(), variables=True, choose=True, survey=(), passwords=(), playbook=None):
        """variables, choose: it asks for variables or credentials on launch. survey: variables that it requires: it is enabled then.
        playbook: its text; it is really run, and decides how a job ends."""
        return self.add(self.templates, "job_template", name=name, organization=organization,
                        credentials=list(credentials), ask_variables_on_launch=variables,
                        ask_credential_on_launch=choose, survey_enabled=bool(survey), survey=list(survey), passwords=list(passwords), playbook=playbook)

    def credential(self, name, credential_type, organization=1, **inputs):
        return self.add(self.credentials, "credential", name=name, organization=organization,
                        credential_type=credential_type, inputs=inputs)

    def move(self, job, status, stdout=None, stored=True):
        """A job gets this status, unless it has ended (it may have been canceled meanwhile). stored: AWX has all that it
        printed (UnifiedJobSerializer in awx/api/serializers.py); False: the rest comes later."""
        with self.lock:
            job = self.jobs[job]
            if job["status"] not in ENDED:
                job["status"], job["failed"] = status, status in ENDED[1:]
                if status in ENDED:
                    job["finished"], job["event_processing_finished"] = now(), stored
                job["stdout"] = job["stdout"] if stdout is None else stdout
            return job["status"]

    def emit(self, job, number, text):
        """The event of this number, of a job that runs, is stored: callback receivers store them in any order. The output is
        in that of their lines (result_stdout_raw_handle in awx/main/models/unified_jobs.py)."""
        with self.lock:
            job = self.jobs[job]
            job["events"][number] = text
            job["stdout"] = "".join(text for _, text in sorted(job["events"].items()))

    def environment(self, job):
        """The variables that the credentials of a job give to its playbook."""
        with self.lock:
            found = {}
            for credential in (self.credentials[number] for number in self.jobs[job]["credentials"]):
                for name, text in self.types[credential["credential_type"]]["injectors"].get("env", {}).items():
                    found[name] = re.sub(r"{{\s*(\w+)\s*}}", lambda m: credential["inputs"].get(m[1], ""), text)
            return found

    def break_next(self, method, path, how):
        """The next request of this method whose path begins so, behind /api/v2/, gets no proper answer. how: a status
        (429 and 503 with Retry-After), "lost" (it is done, and nobody hears it), "cut" (half of the answer), "empty"
        (a list that counts one and has none), seconds (it takes so long, as a float)."""
        with self.lock:
            self.faults.append(Fault(method, "/api/v2/" + path, how))

    # ---- answers ----

    def take_fault(self, method, path):
        for fault in self.faults:
            if fault.method == method and path.startswith(fault.path):
                self.faults.remove(fault)
                return fault.how
        return None

    def find(self, kept, number):
        if int(number) not in kept:
            raise Refused({"detail": "Not found."}, 404)
        return kept[int(number)]

    def page(self, documents, members, path, query):
        """7.2, row "lists"; ?name= is an exact filter."""
        for key in set(query) & {"name", "kind", "managed", "organization", "credential_type"}:
            documents = [d for d in documents if str(d[key]).lower() == query[key].lower()]
        order = query.get("order_by", "id")
        documents = sorted(documents, key=lambda d: d[order.lstrip("-")], reverse=order.startswith("-"))
        size, number = min(int(query.get("page_size", PAGE)), LARGEST_PAGE), int(query.get("page", 1))
        if number > 1 and (number - 1) * size >= len(documents):
            raise Refused({"detail": "Invalid page."}, 404)
        def link(to):
            return f"{path}?{urllib.parse.urlencode({**query, 'page': to})}"
        return 200, {"count": len(documents), "next": link(number + 1) if number * size < len(documents) else None,
                     "previous": link(number - 1) if number > 1 else None,
                     "results": [shown(d, members) for d in documents[(number - 1) * size:number * size]]}

    # ---- credential types and credentials ----

    def create_type(self, body):
        if body.get("kind") not in ("cloud", "net"):  # 7.2, row "custom credential type kind"
            raise Refused({"kind": [f'"{body.get("kind")}" is not a valid choice.']})
        if any((t["name"], t["kind"]) == (body.get("name"), body["kind"]) for t in self.types.values()):
            raise Refused({"__all__": ["Credential type with this Name and Kind already exists."]})  # row "type name"
        self.check_fields(body.get("inputs", {}).get("fields", []))
        made = self.add(self.types, "credential_type", name=body["name"], kind=body["kind"], managed=False,
                        inputs=body.get("inputs", {}), injectors=body.get("injectors", {}))
        return 201, shown(made, TYPE)

    @staticmethod
    def check_fields(fields):
        """7.2, row "field id"; 1.6: label is required, no other members, type string or boolean."""
        seen = set()
        for field in fields:
            if set(field) - FIELD_MEMBERS or not {"id", "label"} <= set(field):
                raise Refused({"inputs": [f"fields: {sorted(field)} are not the members of a field"]})
            if not FIELD_ID.fullmatch(field["id"]) or field["id"] == "tower" or field["id"] in seen:
                raise Refused({"inputs": [f'{field["id"]} is not allowed as an id, or is duplicate']})
            if field.get("type", "string") not in ("string", "boolean"):
                raise Refused({"inputs": [f'{field["type"]} is not a type of a field']})
            seen.add(field["id"])

    def create_credential(self, body):
        owner = tuple(body.get(key) for key in ("organization", "name", "credential_type"))
        if owner[0] not in self.organizations:  # 7.2, row "organization"
            raise Refused({"organization": [f'Invalid pk "{owner[0]}" - object does not exist.']})
        if owner[2] not in self.types:
            raise Refused({"credential_type": [f'Invalid pk "{owner[2]}" - object does not exist.']})
        known = ((c["organization"], c["name"], c["credential_type"]) for c in self.credentials.values())
        if owner in known:  # 7.2, row "credential name"
            raise Refused({"__all__": ["Credential with this Organization, Name and Credential type already exists."]})
        declared = {field["id"] for field in self.types[owner[2]]["inputs"].get("fields", [])}
        if set(body["inputs"]) - declared:  # 7.2, row "inputs not declared"
            raise Refused({"inputs": [f'{sorted(set(body["inputs"]) - declared)} are no fields of the type']})
        made = self.credential(owner[1], owner[2], owner[0], **body["inputs"])
        return 201, shown(made, CREDENTIAL)

    def delete_credential(self, number):
        """7.2, row "delete credential"."""
        self.find(self.credentials, number)
        del self.credentials[int(number)]
        for template in self.templates.values():
            template["credentials"] = [c for c in template["credentials"] if c != int(number)]
        return 204, None

    # ---- launch ----

    def launch(self, number, body):
        template, ignored = self.find(self.templates, number), {}
        variables = body.get("extra_vars") or {}
        if not template["ask_variables_on_launch"]:  # 7.2, row "template without"; a survey's are taken all the same
            ignored = {"extra_vars": {k: v for k, v in variables.items() if k not in template["survey"]}}
            variables = {k: v for k, v in variables.items() if k in template["survey"]}
        credentials = list(template["credentials"])
        if body.get("credentials") and not template["ask_credential_on_launch"]:
            ignored["credentials"] = body["credentials"]
        elif body.get("credentials"):
            credentials = self.check_credentials(template, body["credentials"])
        self.check_needs(template, variables, body)
        job = self.add(self.jobs, "job", name=template["name"], status="pending", failed=False, stdout=None, events={},
                       created=now(), finished=None, event_processing_finished=False,
                       job_template=template["id"], extra_vars=json.dumps(variables), credentials=credentials)
        run = run_playbook if template["playbook"] else self.run_job
        if run:
            threading.Thread(target=run, args=(self, job), daemon=True).start()
        # 7.2, row "launch ok"
        return 201, {**shown(job, JOB), "job": job["id"], "ignored_fields": {k: v for k, v in ignored.items() if v}}

    @staticmethod
    def check_needs(template, variables, body):
        """1.6, "New for 7.2"."""
        missing = [f"'{name}' value missing" for name in template["survey"] if name not in variables]
        if missing:
            raise Refused({"variables_needed_to_start": missing})
        passwords = [name for name in template["passwords"] if name not in body.get("credential_passwords", {})]
        if passwords:
            raise Refused({"passwords_needed_to_start": passwords})

    def check_credentials(self, template, numbers):
        for number in numbers:
            if number not in self.credentials:
                raise Refused({"credentials": [f'Invalid pk "{number}" - object does not exist.']})
        types = [self.types[self.credentials[number]["credential_type"]] for number in numbers]
        for kind in types:
            if kind["kind"] not in LAUNCHED_KINDS:  # 7.2, row "credential kind on launch"
                raise Refused({"credentials": [f'Cannot assign a Credential of kind `{kind["kind"]}`.']})
            if [t["id"] for t in types].count(kind["id"]) > 1:  # 7.2, row "two launch credentials"
                raise Refused({"credentials": [f'Cannot assign multiple {kind["name"]} credentials.']})
        for number in template["credentials"]:  # 7.2, row "launch body lacks"
            credential = self.credentials[number]
            if number not in numbers and credential["credential_type"] not in [t["id"] for t in types]:
                kind = self.types[credential["credential_type"]]["name"]
                raise Refused({"credentials": [
                    f"Removing {kind} credential at launch time without replacement is not supported. "
                    f'Provided list lacked credential(s): {credential["name"]}-{number}.']})
        return numbers

    # ---- jobs ----

    def cancel(self, number):
        """7.2, row "cancel"."""
        if self.find(self.jobs, number)["status"] in ENDED:
            raise Refused({"detail": 'Method "POST" not allowed.'}, 405)
        self.move(int(number), "canceled")
        return 202, None

    def stdout(self, number, form):
        """1.6: as text, 404 as long as the job is queued. UnifiedJobStdout in awx/api/views: what is too large for ?format=txt
        is a sentence, and only ?format=txt_download has it. A renderer of text prints a refusal as Python does."""
        job = self.find(self.jobs, number)
        if job["status"] in QUEUED:
            raise Refused("{'detail': ErrorDetail(string='Not found.', code='not_found')}", 404)
        text = job["stdout"] or ""
        if form == "txt" and len(text.encode()) > DISPLAYED:
            return 200, (f"Standard Output too large to display ({len(text.encode())} bytes), only download supported for sizes "
                         f"over {DISPLAYED} bytes.")
        return 200, text

    def job_events(self, number, path, query):
        """JobEventSerializer in awx/api/serializers.py; they are numbered from 1. What was printed at once is one event."""
        job = self.find(self.jobs, number)
        events = job["events"] or ({1: job["stdout"]} if job["stdout"] else {})
        return self.page([{"id": n, "counter": n, "stdout": text} for n, text in events.items()], ("id", "counter", "stdout"), path, query)

    # ---- the routes of 4.2, and those that 1.6 adds ----

    def act(self, method, path, query, body):
        parts = path.removeprefix("/api/v2/").strip("/").split("/")
        match [method, *parts]:
            case ["GET", "job_templates"]:
                return self.page(self.templates.values(), TEMPLATE, path, query)
            case ["POST", "job_templates", number, "launch"]:
                return self.launch(number, body)
            case ["GET", "job_templates", number, "survey_spec"]:  # JobTemplateSurveySpec in awx/api/views
                survey = self.find(self.templates, number)["survey"]
                return 200, {"name": "", "description": "", "spec": [
                    {"variable": name, "question_name": name, "type": "text", "required": True} for name in survey]} if survey else {}
            case ["GET", "job_templates", number, "credentials"]:
                own = [self.credentials[c] for c in self.find(self.templates, number)["credentials"]]
                return self.page(own, CREDENTIAL, path, query)
            case ["GET", "job_templates", number, "jobs"]:
                own = [j for j in self.jobs.values() if j["job_template"] == self.find(self.templates, number)["id"]]
                return self.page(own, JOB, path, query)
            case ["GET", "jobs", number]:
                return 200, shown(self.find(self.jobs, number), JOB)
            case ["GET", "jobs", number, "job_events"]:
                return self.job_events(number, path, query)
            case ["GET", "jobs", number, "stdout"]:
                return self.stdout(number, query.get("format"))
            case ["POST", "jobs", number, "cancel"]:
                return self.cancel(number)
            case ["GET", "credential_types"]:
                return self.page(self.types.values(), TYPE, path, query)
            case ["GET", "credential_types", number]:
                return 200, shown(self.find(self.types, number), TYPE)
            case ["POST", "credential_types"]:
                return self.create_type(body)
            case ["GET", "credentials"]:
                return self.page(self.credentials.values(), CREDENTIAL, path, query)
            case ["POST", "credentials"]:
                return self.create_credential(body)
            case ["DELETE", "credentials", number]:
                return self.delete_credential(number)
        raise Refused({"detail": "Not found."}, 404)

    def answer(self, method, target, authorization, text):
        """(status, document or text, headers, is it cut)"""
        split = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(split.query))
        with self.lock:
            self.asked.append(Asked(method, target, text))
            how = self.take_fault(method, split.path)
            if self.away:
                raise Broken
            self.waiting += 1
            self.most_waiting = max(self.waiting, self.most_waiting)
        try:
            while self.silent.is_set():
                time.sleep(0.05)
        finally:
            with self.lock:
                self.waiting -= 1
        if isinstance(how, float):
            time.sleep(how)
        if isinstance(how, int):
            return how, {"detail": "broken by the test"}, {"Retry_After": "1"} if how in (429, 503) else {}, False
        with self.lock:
            try:
                if authorization != f"Bearer {self.token}":  # 7.2, row "auth"
                    raise Refused({"detail": "Authentication credentials were not provided."}, 401)
                status, body = self.act(method, split.path, query, json.loads(text or "{}"))
            except json.JSONDecodeError as e:
                status, body = 400, {"detail": f"JSON parse error - {e}"}
            except Refused as refused:
                status, body = refused.status, refused.body
        if how == "lost":
            raise Broken
        if how == "empty":
            body = {"count": 1, "next": None, "previous": None, "results": []}
        return status, body, {}, how == "cut"


class Handler(web.Handler):
    def reply(self):
        text = self.body().decode()
        try:
            status, body, headers, is_cut = self.server.owner.answer(
                self.command, self.path, self.headers.get("Authorization"), text)
        except Broken:
            self.close_connection = True
            return
        is_text = isinstance(body, str)
        content = b"" if body is None else body.encode() if is_text else json.dumps(body).encode()
        self.answer(status, content[:len(content) // 2] if is_cut else content,
                    Content_Type="text/plain" if is_text else "application/json", **headers)

    do_GET = do_POST = do_DELETE = reply


# ---- it answers its own questions ----

def ask(awx, method, path, body=None, token=TOKEN):
    """(status, document) of one request."""
    request = urllib.request.Request(f"{awx.url}/api/v2/{path}", method=method, headers={"Authorization": f"Bearer {token}"},
                                     data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            status, content = answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            status, content = refusal.code, refusal.read()
    try:
        return status, json.loads(content or "null")
    except json.JSONDecodeError:
        return status, content.decode()


def ask_for_credentials(awx):
    env = {"KUBERNAUT_SECRET_S_KEY": "{{key}}"}
    field = {"id": "key", "label": "key", "type": "string", "secret": True}
    kind = {"name": "kubernaut-secret-s", "kind": "cloud", "inputs": {"fields": [field]}, "injectors": {"env": env}}
    assert ask(awx, "GET", "credentials/", token="other")[0] == 401
    status, made = ask(awx, "POST", "credential_types/", kind)
    assert status == 201, made
    assert ask(awx, "POST", "credential_types/", kind)[0] == 400
    for bad in ({"id": "tls.crt"}, {"id": "tower"}, {"label": None}, {"type": "number"}, {"more": 1}):
        wrong = {k: v for k, v in {**field, **bad}.items() if v is not None}
        assert ask(awx, "POST", "credential_types/", {**kind, "name": "x", "inputs": {"fields": [wrong]}})[0] == 400, bad
    secret = {"name": "c", "credential_type": made["id"], "organization": 1, "inputs": {"key": "value"}}
    assert ask(awx, "POST", "credentials/", {**secret, "organization": 7})[1]["organization"][0].startswith('Invalid pk "7"')
    assert ask(awx, "POST", "credentials/", {**secret, "inputs": {"no": "x"}})[0] == 400
    awx.break_next("POST", "credentials/", "lost")
    try:
        raise AssertionError(ask(awx, "POST", "credentials/", secret))
    except OSError:
        pass
    assert ask(awx, "POST", "credentials/", secret)[0] == 400  # the lost answer was a yes
    return ask(awx, "GET", "credentials/?name=c")[1]["results"][0]["id"]


def ask_for_jobs(awx, ephemeral):
    machine = awx.credential("ssh", 1)["id"]
    awx.template("restart pod & more", credentials=[machine])
    awx.template("closed", variables=False, choose=False)
    awx.template("needy", survey=["region"], passwords=["ssh_password"])
    found = ask(awx, "GET", "job_templates/?name=restart%20pod%20%26%20more")[1]
    assert found["count"] == 1 and found["results"][0]["id"] == 1
    variables = {"extra_vars": {"WFE_NAME": "w"}}
    refusal = ask(awx, "POST", "job_templates/1/launch/", {"credentials": [ephemeral]})[1]
    assert "Removing Machine" in refusal["credentials"][0]
    two = [machine, awx.credential("other", 1)["id"]]
    refusal = ask(awx, "POST", "job_templates/1/launch/", {"credentials": two})[1]
    assert "Cannot assign multiple Machine" in refusal["credentials"][0]
    status, job = ask(awx, "POST", "job_templates/1/launch/", {**variables, "credentials": [machine, ephemeral]})
    assert (status, job["ignored_fields"]) == (201, {}) and awx.environment(job["id"]) == {"KUBERNAUT_SECRET_S_KEY": "value"}
    assert ask(awx, "POST", "job_templates/2/launch/", variables)[1]["ignored_fields"] == variables
    assert [q["variable"] for q in ask(awx, "GET", "job_templates/3/survey_spec/")[1]["spec"]] == ["region"]
    assert ask(awx, "POST", "job_templates/3/launch/")[1] == {"variables_needed_to_start": ["'region' value missing"]}
    assert "passwords_needed_to_start" in ask(awx, "POST", "job_templates/3/launch/", {"extra_vars": {"region": "x"}})[1]
    assert ask(awx, "GET", "jobs/1/stdout/?format=txt")[0] == 404
    awx.move(1, "running", "PLAY [all]\n")
    assert ask(awx, "GET", "jobs/1/stdout/?format=txt") == (200, "PLAY [all]\n")
    awx.move(1, "running", "x" * (DISPLAYED + 1))
    assert ask(awx, "GET", "jobs/1/stdout/?format=txt")[1].startswith("Standard Output too large to display (1048577 bytes)")
    assert len(ask(awx, "GET", "jobs/1/stdout/?format=txt_download")[1]) == DISPLAYED + 1
    assert "result_stdout" not in ask(awx, "GET", "jobs/1/")[1]
    assert ask(awx, "GET", "jobs/1/job_events/?order_by=-counter&page_size=1")[1]["count"] == 1
    assert [ask(awx, "POST", "jobs/1/cancel/")[0] for _ in range(2)] == [202, 405]
    newest = ask(awx, "GET", "job_templates/1/jobs/?order_by=-id")[1]["results"][0]
    assert json.loads(newest["extra_vars"]) == variables["extra_vars"]


def ask_for_lists_and_faults(awx, ephemeral):
    assert [ask(awx, "DELETE", f"credentials/{ephemeral}/")[0] for _ in range(2)] == [204, 404]
    for number in range(30):
        awx.template(f"t{number}")
    first = ask(awx, "GET", "job_templates/")[1]
    second = ask(awx, "GET", first["next"].removeprefix("/api/v2/"))[1]
    assert (len(first["results"]), len(second["results"]), second["next"]) == (25, 8, None)
    for status in (429, 503):
        awx.break_next("GET", "jobs/", status)
        assert ask(awx, "GET", "jobs/1/")[0] == status
    awx.break_next("GET", "jobs/", "cut")
    assert isinstance(ask(awx, "GET", "jobs/1/")[1], str)
    awx.away = True
    try:
        raise AssertionError(ask(awx, "GET", "jobs/1/"))
    except OSError:
        pass


if __name__ == "__main__":
    with AWX() as server:
        number = ask_for_credentials(server)
        ask_for_jobs(server, number)
        ask_for_lists_and_faults(server, number)
        print(f"{len(server.asked)} questions, answered as AWX does")
