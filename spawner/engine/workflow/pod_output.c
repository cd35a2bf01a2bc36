#include "spawner/engine/workflow/workflow.h"

int df_workflow_give_pod(struct df_kube *k, const struct df_workflow_printer *p,
                         const struct df_output_reader *to, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods,
                                  .name_space = p->name_space,
                                  .name = p->pod,
                                  .subresource = "log"};
    DF_FREE char *query = df_strf("container=%s", p->container);
    struct df_err why = {0};
    int known = to->begin(to->arg, p->part, err);
    if (known < 0 || df_check_alloc(query, err) < 0)
        return -1;
    if (known || df_kube_get_text(k, &at, query, to->add, to->arg, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}
