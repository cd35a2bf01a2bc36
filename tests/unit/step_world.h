/*
 * step_world.h - a step that waits for its claim, and the test its runner. Include behind cmocka.h.
 */
#ifndef DF_TEST_STEP_WORLD_H
#define DF_TEST_STEP_WORLD_H

#include "tests/unit/control_world.h"

/* A world with an executor whose first run's plan step is started and not claimed yet. */
static inline int setup_with(void **state, const char *spec)
{
    if (world_setup(state) < 0)
        return -1;
    struct world *w = *state;
    make_executor(w, "net", spec);
    cJSON_Delete(make_run(w, "net", "{'action':'provision','autoApprove':true}"));
    return df_control_start(w->s.control, NULL);
}

static inline int setup(void **state)
{
    return setup_with(state, "'variables':{'region':'eu'}");
}

#define assert_fails(call, err, class_, reason_)                                                   \
    do {                                                                                           \
        (err) = (struct df_err){0};                                                                \
        assert_int_equal(call, -1);                                                                \
        if ((err).cls != (class_))                                                                 \
            fail_msg("class %s: %s", df_err_class_name((err).cls), (err).message);                 \
        assert_string_equal((err).reason, reason_);                                                \
    } while (0)

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)

#endif
