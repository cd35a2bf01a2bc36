"""What tests of the command line share: modules, a document, and terminals to run them on."""

import os
import pty
import select

from . import dayfly

HELLO = (dayfly.ROOT / "examples/hello/main.tf").read_text()
# Applies until the file named by var.gate is there.
SLOW = """
variable "gate" { type = string }
resource "terraform_data" "first" { input = "first" }
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "touch ${var.gate}.begun; while [ ! -e ${var.gate} ]; do sleep 0.05; done" }
}
"""
EXECUTOR = """
apiVersion: dayfly.dev/v1alpha1
kind: Executor
metadata: {{name: {name}}}
spec:
  runtime: {{name: {runtime}}}
  source: {{url: "file://{module}", kind: directory}}
  variables: {{guests: {guests}}}
"""


def slow(home, name="slow"):
    """(module directory, gate): the apply waits for gate and makes gate.begun when it has begun."""
    return home.module(name, SLOW), home.directory / f"{name}.gate"


def begun(gate):
    return gate.with_name(gate.name + ".begun").exists()


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, home, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(args[0], [str(a) for a in args], {"TERM": "xterm", **home.env})
        self.shown = ""
        self.code = None

    def read(self, seconds=0.1):
        """Reads what there is; False when the program has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            self.shown += os.read(self.fd, 65536).decode(errors="replace")
            return True
        except OSError:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return False

    def expect(self, text):
        def there():
            assert text in self.shown or self.read() or text in self.shown, f"no {text!r} in {self.shown}"
            return text in self.shown
        dayfly.wait_for(f"{text!r} on the terminal", there)

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Waits for the program's end; its exit code."""
        dayfly.wait_for("the end of the program", lambda: not self.read())
        os.close(self.fd)
        return self.code


def on_terminal(home, *args):
    return Terminal(home, dayfly.DAYFLY, *args)
