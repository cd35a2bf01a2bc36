#include "runner/platform/advice.h"

#include "common/base/util.h"

const struct df_advice df_advices[] = {
    {"InvalidInput", "Correct what Failures lists; nothing was changed, so the action can be "
                     "started again at once."},
    {"Unauthorized", "Give the action a kubeconfig whose token or certificate is still valid."},
    {"Forbidden", "Grant the account of the kubeconfig the rights that the message names."},
    {"QuotaExceeded", "Raise the quota of the namespace that the message names, or ask for less "
                      "in the manifests."},
    {"BootstrapFailed", "Look at the pods of Argo CD and Argo Workflows in their namespaces, mend "
                        "what they say, and deploy again."},
    {"ArgoCDMissing",
     "Put core-install.yaml of a release of Argo CD into a folder argocd, and name "
     "the folder above it by --manifests, or mount it as /manifests."},
    {"RepositoryUnavailable", "Check gitRepository and /secrets/git, of a chart its repoURL, and "
                              "that the cluster reaches the repository."},
    {"PathNotFound", "Check the component's path in dag.yaml: gitRepository does not have it at "
                     "gitRevision."},
    {"RevisionNotFound", "Check gitRevision in environment.yaml: gitRepository has no such branch, "
                         "tag or commit; of a chart check its name and version in dag.yaml."},
    {"CommitChanged", "Look at what has come into the repository, and approve a new plan, or start "
                      "again with its commit as EXPECTED_COMMIT."},
    {"NotOurs",
     "Rename what has the same name in the repository, or ask the owner of the other one "
     "to hand it over by the label that the message names."},
    {"SyncFailed", "Correct the manifest that Argo CD refused, commit it, and deploy again."},
    {"SyncTimeout", "See which resource Argo CD still waits for; if it only needs longer, raise "
                    "timeouts.sync or the component's timeout."},
    {"HealthTimeout", "Look at the events and logs of the component's pods; if they only need "
                      "longer, raise timeouts.health."},
    {"ImagePullFailed", "Check the image's name and tag, and that /secrets/registry has a login "
                        "for its registry."},
    {"Degraded", "Look at the events and logs of the resource that the message names, correct it "
                 "in the repository, and deploy again."},
    {"OutOfSync", "Deploy to bring the cluster back to the repository, or commit what was changed "
                  "by hand."},
    {"Missing", "Deploy to make what is missing."},
    {"DependencyFailed", "Mend the component that failed and deploy again: what is done already "
                         "is left alone."},
    {"StuckFinalizer", "Find out why the controller behind the finalizer does not end its work; "
                       "remove the finalizer by hand only if that controller is gone."},
    {"Unreachable", "See whether the API server of the kubeconfig can be reached from here, then "
                    "start the action again."},
    {"Unavailable", "See why the API server did not answer for so long, then start the action "
                    "again."},
    {"Interrupted", "Start the action again: it goes on where it stopped."},
    {"Stopped", "Start the action again: it goes on where it stopped."},
    {"Timeout", "Start the action again, it goes on where it stopped, or give it more time by "
                "ACTION_TIMEOUT."},
    {"ComparisonError", "Correct what Argo CD could not render or fetch, as the end of the message "
                        "says, and deploy again."},
    {"WorkloadNotReady",
     "Look at the pods in the diagnostics; if fewer replicas are enough, say so "
     "by minReadyReplicas in health.yaml."},
    {"SharedResourceWarning", "Take the object that the warning names out of all components but "
                              "one: each deploy of the others takes it over."},
    {"NoObjects", "Check the component's path and what its folder has: Argo CD reads .yaml, .yml, "
                  ".json, kustomizations and charts."},
    {"NotInDag",
     "Put the component of each Application under notInDag into dag.yaml again, or remove "
     "it: by a teardown with TARGET_SCOPE=app:NAME while dag.yaml has it."},
    {"OrphansLeft", "Remove what removal in the report lists, or end what holds it as it says, and "
                    "start the teardown again."},
    {"RemovalFailed", "Correct what the API server refused, as the message says, and start the "
                      "teardown again."},
    {"VolumesRemain", "See which pod still uses the claim, and whether the provisioner of its "
                      "volume works; then start the teardown again."},
};
const size_t df_advice_count = DF_ARRAY_SIZE(df_advices);
