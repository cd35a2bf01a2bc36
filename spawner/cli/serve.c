/* dayfly serve: the spawner service in the foreground. */
#include <errno.h>
#include <poll.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/signals.h"
#include "spawner/service/service.h"
#include "spawner/store/documents/holder.h"
#include "spawner/upstream.h"

static void wait_for_signal(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    (void)df_signals_take(fd);
}

/* Nodes lead requests to a pod that ends for a moment longer. Without an answer the API server
 * would refuse the documents of people, whose names this webhook writes. */
#define LINGER_MS 3000

static bool has_siblings(const struct df_config *config)
{
    return config->elects && getenv("KUBERNETES_SERVICE_HOST");
}

#define RETRY_MS 5000 /* for a command that holds the data directory only briefly */
#define PAUSE_MS 50

/* True if a `dayfly serve` holds the data directory. A command like `get` releases it soon. */
static bool is_service(const struct df_config *config)
{
    struct df_holder holder = {0};
    return df_holder_find(config->data_directory, &holder) && strstr(holder.command, " serve");
}

static int start(const struct df_config *config, struct df_service **ret, struct df_err *err)
{
    for (int64_t end = df_mono_ms() + RETRY_MS;;) {
        if (df_service_start(config, ret, err) == 0)
            return 0;
        if (!df_streq(err->reason, "Busy") || is_service(config) || df_mono_ms() >= end)
            return -1;
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

static int serve(const struct df_config *config, int signals_fd, struct df_err *err)
{
    struct df_service *service = NULL;
    df_log_setup(config->log_level, config->log_json, "spawner");
    if (start(config, &service, err) < 0)
        return -1;
    df_info("serving at %s, data directory %s", df_service_url(service), config->data_directory);
    if (config->upstream_listen)
        df_info("taking steps of %s at http://%s", df_service_spawner(service)->upstream->name,
                config->upstream_listen);
    wait_for_signal(signals_fd);
    df_info("stopping: steps under way on this machine are asked to end and store their state, "
            "those in pods live on; a second signal ends this process at once");
    df_signals_release_later();
    df_service_leave(service, true);
    if (has_siblings(config))
        (void)poll(NULL, 0, LINGER_MS);
    df_service_stop(service, true);
    df_info("stopped");
    return DF_EXIT_OK;
}

int df_cmd_serve(struct df_cli *cli, struct df_err *err)
{
    DF_STRS struct df_strs overrides = {0};
    DF_CLOSE int signals_fd = -1;
    struct df_config config = {0};
    if (df_cli_settings(&cli->args, &overrides, err) < 0 || df_signals_open(&signals_fd, err) < 0)
        return -1;
    if (df_config_load(df_cli_config(cli), environ, &overrides, &config, err) < 0)
        return -1;
    int result = serve(&config, signals_fd, err);
    df_config_free(&config);
    return result;
}
