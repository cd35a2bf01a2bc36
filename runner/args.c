#include "runner/args.h"

enum df_command_events df_args_add_events(const struct df_context *c, struct df_strs *args)
{
    if (df_tool_has_json_into(&c->tool)) {
        (void)df_strs_addf(args, "-json-into=%s", c->fifo_path);
        return DF_EVENTS_ASIDE;
    }
    (void)df_strs_add(args, "-json");
    return DF_EVENTS_ON_STDOUT;
}

void df_args_add_colour(const struct df_context *c, struct df_strs *args)
{
    if (!c->is_coloured)
        (void)df_strs_add(args, "-no-color");
}

void df_args_add_all(struct df_strs *args, const struct df_strs *from)
{
    for (size_t i = 0; i < from->len; i++)
        (void)df_strs_add(args, from->items[i]);
}
