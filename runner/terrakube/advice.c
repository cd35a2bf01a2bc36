#include "runner/terrakube/advice.h"

/* The workspace has the credentials, and the executor's container what is trusted. */
static const struct df_source_words said[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "the server's host key is not the pinned one: somebody intercepts the connection, or the key "
     "was changed (then put the new one into the file of the executor's DAYFLY_KNOWN_HOSTS)"},
    {"Host key verification failed",
     "the server's host key is not among the pinned ones: put its line into the file of the "
     "executor's DAYFLY_KNOWN_HOSTS"},
    {"Load key",
     "the private key cannot be read: the workspace's SSH key must be an OpenSSH or PEM "
     "key without a passphrase"},
    {"Authentication failed",
     "the server rejects the credentials of the workspace's VCS connection: renew them there"},
    {"could not read Username",
     "the server requires credentials: add the VCS connection or SSH key to the workspace"},
    {"could not read Password",
     "the server requires credentials: add the VCS connection or SSH key to the workspace"},
    {"SSL certificate problem",
     "the server's certificate is not trusted: the executor's container must trust its CA"},
    {"server certificate verification failed",
     "the server's certificate is not trusted: the executor's container must trust its CA"},
    {0}};

const struct df_source_advice df_terrakube_source_advice = {
    .ssh_key = "add an SSH key to the workspace", .said = said};

static void unlock_words(const char *what, const char *id, char out[DF_FAILURE_UNLOCK_MAX])
{
    (void)snprintf(out, DF_FAILURE_UNLOCK_MAX,
                   "wait for its end, or run `%s force-unlock %s` with this workspace's backend "
                   "if its holder is gone",
                   df_starts_with(what, "terraform") ? "terraform" : "tofu", id);
}

const struct df_failure_advice df_terrakube_failure_advice = {
    .unlock = unlock_words,
    .credentials = "Add them to the workspace, or to a collection of it, as sensitive environment "
                   "variables, or turn on dynamic credentials"};
