/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "app.h"
#include "datapath/stream/stream.h"
#include "log.h"
#include "notify.h"
#include "tables/tables.h"

#define LEAVING_CHECK_MS 5 /* between looks at the texts of old terms */

void
tokd_reload_ask(struct tokd_app *app)
{
	atomic_store(&app->reload.asked, true);
	tokd_control_wake(&app->control);
}

/* ---- the loading thread ---- */

/* Options that cannot change keep their value. */
static void
keep_what_stays(const struct tokd_app *app, struct tokd_options *opt)
{
	struct opt_value is, asked;

	for (size_t i = 0; opt_value(&tokd_program, &app->opt.given, &app->opt, i, &is); i++) {
		opt_value(&tokd_program, &opt->given, opt, i, &asked);
		if (tokd_program.defs[i].flags & OPT_RELOADS)
			continue;
		if (strcmp(is.text, asked.text) != 0)
			TOKD_LOG(control, WARNING,
				"reload: --%s stays %s; a restart changes it to %s\n", is.name,
				is.text[0] != '\0' ? is.text : "unset",
				asked.text[0] != '\0' ? asked.text : "unset");
		opt_copy(&tokd_program, i, &app->opt.given, &app->opt, &opt->given, opt);
	}
}

static bool
read_options(const struct tokd_app *app, struct tokd_reload *r)
{
	struct opt_error e;
	int eal_argc;

	if (tokd_options_parse(r->argc, r->argv, environ, &eal_argc, &r->opt, &e) ==
		TOKD_OPTIONS_RUN) {
		r->opt.fragments = tokd_frags_each(r->opt.fragments, app->n_workers);
		keep_what_stays(app, &r->opt);
		if (tokd_options_check(&r->opt, &e))
			return true;
	}
	snprintf(r->error.text, sizeof(r->error.text), "%s", e.text);
	return false;
}

/* False: something was made at start for the vocabularies, and does not fit the new ones. */
static bool
fits(const struct tokd_app *app, const struct tokd_served *served, struct tok_error *err)
{
	for (uint32_t w = 0; w < app->n_workers; w++) {
		const struct tokd_terms *t = served->terms[w], *was = app->served->terms[w];
		bool same = t->n_vocabs == was->n_vocabs;

		for (uint32_t i = 0; i < t->n_vocabs; i++) {
			same = same && t->vocab[i].checksum == was->vocab[i].checksum;
			if (t->vocab[i].keys != NULL &&
				tokb_bytes(t->vocab[i].keys) > app->worker[w]->streams->keys_each) {
				snprintf(err->text, sizeof(err->text),
					"the block keys of --vocab number %u need more memory than "
					"the streams have; restart",
					i + 1);
				return false;
			}
		}
		if (app->opt.sink != NULL && !same) {
			snprintf(err->text, sizeof(err->text),
				"--sink: tokd-gpu was told of other vocabularies at start; restart "
				"to change them");
			return false;
		}
	}
	return true;
}

/* A file that the sandbox hides looks like one without permission. */
static void
name_sandbox(const struct tokd_app *app, struct tok_error *err)
{
	const size_t len = strlen(err->text);

	if (app->opt.sandbox && strstr(err->text, strerror(EACCES)) != NULL)
		snprintf(err->text + len, sizeof(err->text) - len,
			"; --sandbox allows the folders of the files given at start and the search "
			"path of --vocab; restart to read from another");
}

static void *
reload_thread(void *arg)
{
	struct tokd_app *app = arg;
	struct tokd_reload *r = &app->reload;
	int node[TOKD_RINGS_MAX];

	for (uint32_t i = 0; i < app->n_workers; i++)
		node[i] = app->worker[i]->node;
	r->served = NULL;
	if (read_options(app, r))
		tokd_served_load(&r->served, &r->opt, node, app->n_workers, &r->error);
	if (r->served != NULL && !fits(app, r->served, &r->error)) {
		tokd_served_free(r->served);
		r->served = NULL;
	}
	if (r->served == NULL)
		name_sandbox(app, &r->error);
	atomic_store_explicit(&r->loaded, true, memory_order_release);
	tokd_control_wake(&app->control);
	return NULL;
}

/* ---- the control thread ---- */

static void
failed(struct tokd_app *app, const char *why)
{
	struct tokd_reload *r = &app->reload;
	char status[64 + sizeof(r->why.text)];

	TOKD_LOG(control, ERR, "reload: %s: nothing has changed\n", why);
	snprintf(status, sizeof(status), "READY=1\nSTATUS=reload failed: %s", why);
	tokd_notify(status);
	opt_free(&r->opt.given);
	pthread_mutex_lock(&app->lock);
	r->n_failed++;
	snprintf(r->why.text, sizeof(r->why.text), "%s", why);
	pthread_mutex_unlock(&app->lock);
	r->state = TOKD_RELOAD_IDLE;
}

static void
begin(struct tokd_app *app)
{
	struct tokd_reload *r = &app->reload;
	int rc;

	tokd_notify("RELOADING=1\nSTATUS=reloading");
	TOKD_LOG(control, NOTICE, "reload: loading %s\n",
		app->opt.config != NULL ? app->opt.config : "vocabularies, without --config");
	r->error.text[0] = '\0';
	memset(&r->opt, 0, sizeof(r->opt));
	atomic_store(&r->loaded, false);
	/* On this thread's CPUs. */
	rc = pthread_create(&r->thread, NULL, reload_thread, app);
	if (rc != 0) {
		failed(app, strerror(rc));
		return;
	}
	pthread_setname_np(r->thread, "tokd-reload");
	r->state = TOKD_RELOAD_LOADING;
}

static void
log_changes(const struct tokd_options *from, const struct tokd_options *to)
{
	struct opt_value was, is;

	for (size_t i = 0; opt_value(&tokd_program, &from->given, from, i, &was); i++) {
		opt_value(&tokd_program, &to->given, to, i, &is);
		if (strcmp(was.text, is.text) != 0)
			TOKD_LOG(control, NOTICE, "reload: --%s is %s, was %s\n", is.name,
				is.text[0] != '\0' ? is.text : "unset",
				was.text[0] != '\0' ? was.text : "unset");
	}
}

/* From here on texts begin with what was loaded. */
static void
hand_over(struct tokd_app *app)
{
	struct tokd_reload *r = &app->reload;
	char *was = app->opt.given.file;

	log_changes(&app->opt, &r->opt);
	pthread_mutex_lock(&app->lock);
	r->old = app->served;
	app->opt = r->opt;
	app->served = r->served;
	r->n_done++;
	pthread_mutex_unlock(&app->lock);
	r->served = NULL;
	memset(&r->opt, 0, sizeof(r->opt));
	if (r->first_file == NULL)
		r->first_file = was;
	else
		free(was);
	/* Release: with all that was loaded. */
	for (uint32_t i = 0; i < app->n_workers; i++)
		atomic_store_explicit(
			&app->worker[i]->next_terms, app->served->terms[i], memory_order_release);
	r->state = TOKD_RELOAD_LEAVING;
	r->told = false;
	TOKD_LOG(control, NOTICE, "reload: done, vocabulary %s\n", app->opt.vocab);
	tokd_notify("READY=1\nSTATUS=reloaded");
}

static void
finish(struct tokd_app *app)
{
	struct tokd_reload *r = &app->reload;

	pthread_join(r->thread, NULL);
	if (r->served != NULL)
		hand_over(app);
	else
		failed(app, r->error.text);
}

static bool
is_left(const struct tokd_served *s)
{
	for (uint32_t i = 0; i < s->n_workers; i++) {
		if (!tokd_terms_are_left(s->terms[i]))
			return false;
	}
	return true;
}

void
tokd_reload_poll(struct tokd_app *app)
{
	struct tokd_reload *r = &app->reload;

	if (r->state == TOKD_RELOAD_LOADING &&
		atomic_load_explicit(&r->loaded, memory_order_acquire))
		finish(app);
	if (r->state == TOKD_RELOAD_LEAVING && is_left(r->old)) {
		struct tokd_served *old = r->old;

		pthread_mutex_lock(&app->lock);
		r->old = NULL;
		pthread_mutex_unlock(&app->lock);
		tokd_served_free(old);
		r->state = TOKD_RELOAD_IDLE;
	}
	if (r->state == TOKD_RELOAD_LEAVING && !r->told && atomic_load(&r->asked)) {
		TOKD_LOG(control, NOTICE,
			"reload: waits for %u texts that began before the last reload\n",
			tokd_reload_old_texts(app));
		r->told = true;
	}
	if (r->state == TOKD_RELOAD_IDLE && atomic_exchange(&r->asked, false))
		begin(app);
}

int
tokd_reload_wait_ms(const struct tokd_app *app)
{
	return app->reload.state == TOKD_RELOAD_LEAVING ? LEAVING_CHECK_MS : -1;
}

uint32_t
tokd_reload_old_texts(const struct tokd_app *app)
{
	const struct tokd_served *old = app->reload.old;
	uint32_t n = 0;

	for (uint32_t i = 0; old != NULL && i < old->n_workers; i++)
		n += atomic_load_explicit(&old->terms[i]->users, memory_order_relaxed);
	return n;
}

void
tokd_reload_close(struct tokd_app *app)
{
	struct tokd_reload *r = &app->reload;

	if (r->state == TOKD_RELOAD_LOADING)
		pthread_join(r->thread, NULL);
	opt_free(&r->opt.given);
	tokd_served_free(r->served);
	tokd_served_free(r->old);
	free(r->first_file);
}
