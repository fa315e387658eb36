/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "inside.h"

static bool
compile(struct rx *rx, const struct tok_pretok_split *split, uint32_t n,
	struct tok_machine *machine)
{
	struct rx_program *program = rx_alloc(rx, n, sizeof(*program));
	struct rx_splitter *splitter = rx_alloc(rx, n, sizeof(*splitter));
	struct rx_readings readings;
	struct rx_sets *sets = rx_alloc(rx, 1, sizeof(*sets));
	struct rx_classes *classes = rx_alloc(rx, 1, sizeof(*classes));
	const char *wrong;

	if (program == NULL || splitter == NULL || sets == NULL || classes == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct rx_node *tree;

		rx->number = i + 1;
		tree = rx_parse(rx, split[i].regex);
		if (tree == NULL || !rx_program(rx, tree, sets, &program[i]))
			return false;
	}
	if (!rx_classes(rx, sets, classes))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		splitter[i].behavior = split[i].behavior;
		if (!rx_matcher(rx, &program[i], classes, &splitter[i].matcher))
			return false;
	}
	if (!rx_readings(rx, splitter, n, classes->n, &readings) ||
		!rx_begins_fresh(rx, &readings) || !rx_machine(rx, &readings, classes, machine))
		return false;
	wrong = tok_machine_check(machine->step, machine->n_states, machine->width);
	return wrong == NULL ||
	       tok_fail(rx->err, "%s: not implemented: regular expressions that %s", rx->where,
		       wrong);
}

bool
tok_regex_compile(const char *where, const struct tok_pretok_split *split, size_t n,
	struct tok_machine *machine, struct tok_error *err)
{
	struct rx rx = {.where = where, .err = err, .of = (uint32_t)n};
	bool ok;

	*machine = (struct tok_machine){0};
	if (n > TOK_SPLITS_MAX)
		return tok_fail(
			err, "%s: %zu splits in a row, the limit is %u", where, n, TOK_SPLITS_MAX);
	ok = compile(&rx, split, (uint32_t)n, machine);
	rx_free(&rx);
	if (!ok)
		tok_machine_free(machine);
	return ok;
}

void
tok_machine_free(struct tok_machine *machine)
{
	free(machine->step);
	free(machine->run);
	*machine = (struct tok_machine){0};
}
