//go:build unix

package postgres

// fault is a fault in a policy, a store or a broker, with the checks that must fail because of it.
type fault struct {
	name  string
	under []int
	// expectedText is a text that the last of the failed checks must contain.
	expectedText string
	policy       []string
	// cause has the statements that cause the fault. repair has the statements that repair the fault.
	cause, repair []string
	keeps         int
	deep          bool
}

// faults returns all faults. The name of a fault contains the number of the check that finds it.
func faults() []fault {
	return append(append(faultsOfDesign(), faultsOfOperation()...), faultsOfStores()...)
}

func faultsOfDesign() []fault {
	return []fault{
		{name: "K3_1_an_identity_that_nobody_signed", under: []int{1}, expectedText: "which is not signed", policy: []string{"  billing:\n", "  deliveries:\n",
			topic, `{webhook: {listen: "127.0.0.1:8080", path: /hooks, scheme: github, secret: "${WEBHOOK_SECRET}", unsigned: {headers: [x-github-delivery], because: nobody sees them}}}`,
			"{id: id, source: source}", `{id: "header:x-github-delivery"}`, "30d", "forever"}},
		{name: "K3_2_ids_are_found_in_another_way", under: []int{2}, expectedText: "processes have found ids by ", policy: []string{"{id: id,", `{id: "body:/id",`}},
		{name: "K3_3_the_name_of_the_consumer_is_changed", under: []int{3}, expectedText: "knows billing, which the policy lacks", policy: []string{"  billing:\n", "  accounts:\n"}},
		{name: "K3_3_another_service_under_its_name", under: []int{3}, expectedText: "owned by the handlers of payment", policy: []string{"{payment: {sql", "{refund: {sql"}},
		{name: "K3_5_no_kind_of_effect", under: []int{5}, expectedText: "does not declare its kind", policy: []string{declared, ""}},
		{name: "K3_6_natural_without_a_kind_that_is", under: []int{5, 6}, expectedText: "but no kind of effect is declared", policy: []string{declared, "",
			receiving, "    strategy: {natural: {order: irrelevant}}\n", "    retention: 30d\n", ""}},
		{name: "K3_7_no_constraint_decides", under: []int{7}, expectedText: "the unique constraint ", policy: []string{
			receiving, "    strategy: {marker: true, business_key: {constraint: booked.amount}}\n"}},
		{name: "K3_8_a_call_outside_without_a_key", under: []int{8, 9}, expectedText: "no key is sent", policy: callReplacements("key: none, may_double: the bank shrugs")},
		{name: "K3_8_a_call_that_may_be_lost", under: []int{8, 9}, expectedText: "no key is sent", policy: callReplacements("key: none, may_be_lost: the bank shrugs")},
		{name: "K3_10_a_replay_with_effects_outside", under: []int{10}, expectedText: "repeats the external effects: a second one charges twice",
			policy: callReplacements("window: 24h", "    timeout: 20s\n", "    timeout: 20s\n    replay: {allowed: true, effects: real}\n")},
		{name: "K3_10_a_replay_of_what_is_not_declared", under: []int{5, 10}, expectedText: "does not say what a second effect would do",
			policy: []string{declared, "    replay: {allowed: true}\n"}},
		{name: "K3_12_a_reaper_that_is_off", under: []int{12}, expectedText: "the reaper is off", policy: []string{"retention: 30d", "retention: {keep: 30d, off: true}"}},
		{name: "K3_12_processes_keep_ids_for_another_time", under: []int{12}, expectedText: "60d by the policy, but its processes last recorded 30d", policy: []string{"30d", "60d"}},
		{name: "K3_13_retention_under_the_horizon", under: []int{13}, expectedText: "ids are kept for 30d, but a copy can arrive ", keeps: 90 * aDay},
		{name: "K3_13_a_topic_that_is_never_emptied", under: []int{13}, expectedText: "copies can arrive at any later time", keeps: -1},
		{name: "K3_14_a_state_that_an_old_message_overwrites", under: []int{14}, expectedText: "overwrites a newer one", policy: []string{"kind: ledger", "kind: entity"}},
	}
}

func faultsOfOperation() []fault {
	return []fault{
		{name: "K3_15_a_backlog_without_an_alert", under: []int{15}, expectedText: "no maximum age is set", policy: []string{receiving, "    strategy: inbox\n"}},
		{name: "K3_19_no_fingerprint", under: []int{19}, expectedText: "no fingerprint is kept", policy: []string{"    timeout: 20s\n", "    timeout: 20s\n    fingerprint: none\n"}},
		{name: "K3_20_a_key_that_is_forgotten_before_the_next_try", under: []int{20}, expectedText: "the key would be forgotten",
			policy: callReplacements("window: 1h", "    timeout: 20s\n", "    timeout: 20s\n    retry: {initial_delay: 1s, max_delay: 2h}\n")},
		{name: "K3_23_what_was_aborted_is_read", under: []int{23}, expectedText: "aborted transactions are read", policy: []string{"topics: [payments]", "topics: [payments], isolation: read_uncommitted"}},
		{name: "K3_26_a_lease_shorter_than_the_longest_handler", under: []int{26}, expectedText: "may run for 1m30s, but after its lease of 30s", policy: []string{"timeout: 20s", "timeout: 90s"}},
	}
}

func faultsOfStores() []fault {
	rows := func(name string, under int, says, now, before string) fault {
		set := func(to string) []string { return []string{"update semel_inbox set " + to + " where first_error <> ''"} }
		return fault{name: name, under: []int{under}, expectedText: says, cause: set(now), repair: set(before)}
	}
	return []fault{
		{name: "K3_7_a_table_is_missing", under: []int{7}, expectedText: "the tables do not fit this release", cause: []string{"alter table semel_acts rename to away"}, repair: []string{"alter table away rename to semel_acts"}},
		{name: "K3_7_a_table_of_somebody_else_has_the_name", under: []int{7}, expectedText: "the tables do not fit this release",
			cause:  []string{"alter table semel_positions rename to away", "create table semel_positions (mine integer)"},
			repair: []string{"drop table semel_positions", "alter table away rename to semel_positions"}},
		{name: "K3_7_markers_of_another_schema", under: []int{7}, expectedText: "semel_markers has no primary key (scope, id)",
			cause:  []string{"alter table semel_markers rename to away", "create table semel_markers (id integer, message text)"},
			repair: []string{"drop table semel_markers", "alter table away rename to semel_markers"}},
		{name: "K3_7_tables_of_an_earlier_release", under: []int{7}, expectedText: "the schema lacks migration 0001_first",
			cause:  []string{"create table away as select * from semel_migrations where version = 1", "delete from semel_migrations where version = 1"},
			repair: []string{"insert into semel_migrations select * from away", "drop table away"}},
		{name: "K3_7_tables_of_a_later_release", under: []int{7}, expectedText: "the tables do not fit this release",
			cause:  []string{"insert into semel_migrations (version, name, checksum, at) select 9001, 'later', 'x', at from semel_migrations where version = 1"},
			repair: []string{"delete from semel_migrations where version = 9001"}},
		{name: "K3_7_a_marker_whose_row_says_otherwise", under: []int{7}, expectedText: " is applied, and its marker says waiting", deep: true,
			cause: []string{"update semel_markers set outcome = 2 where outcome = 1"}, repair: []string{"update semel_markers set outcome = 1 where outcome = 2"}},
		{name: "K3_7_an_effect_that_its_stream_does_not_know", under: []int{7}, expectedText: " is applied, and its stream does not exist", deep: true,
			policy: []string{"    timeout: 20s\n", "    timeout: 20s\n    version: {stream: \"body:/order\", number: \"body:/amount\"}\n"},
			cause:  []string{"update semel_inbox set stream = id, stream_version = 5 where state = 'COMPLETED'"}, repair: []string{"update semel_inbox set stream = null, stream_version = null"}},
		{name: "K3_7_a_row_without_its_marker", under: []int{7}, expectedText: " is applied, and it has no marker", deep: true,
			cause: []string{"update semel_markers set scope = scope + 7000"}, repair: []string{"update semel_markers set scope = scope - 7000"}},
		rows("K3_15_parked_rows_that_nobody_watches", 15, "1 row is parked, the oldest for 3d", "changed_at = 3 DAYS AGO", "changed_at = received_at"),
		rows("K3_15_a_message_that_has_waited_too_long", 15, "and pending_age is 1m",
			"state = 'RECEIVED', received_at = 3 DAYS AGO", "state = 'PARKED', received_at = changed_at"),
		rows("K3_16_a_claim_that_nobody_takes_over", 16, "1 row is claimed although the lease ended",
			"state = 'IN_PROGRESS', token = 7, locked_until = 3 DAYS AGO", "state = 'PARKED', token = null, locked_until = null"),
		rows("K3_21_a_call_of_unknown_outcome", 21, "1 row had a call with an unknown outcome", "calls_started = calls_started + 1", "calls_started = calls_started - 1"),
		{name: "K3_22_offsets_without_markers", under: []int{22}, expectedText: "the group is ahead of the store",
			cause: []string{`update semel_positions set "offset" = "offset" - 3 where "offset" > 3`}, repair: []string{`update semel_positions set "offset" = "offset" + 3 where "offset" > 0`}},
		rows("K3_26_a_handler_that_kills_its_process", 26, "1 row is parked because the processes", "reason = 'kills its process'", "reason = 'retry exhausted'"),
	}
}

// refusedFaults returns faults in the policy that make every command fail. Each fault replaces a part of the correct
// policy. The error must name the position of the fault.
func refusedFaults() map[string][]string {
	return map[string][]string{
		"K3_a_lease_shorter_than_a_call":                         callReplacements("window: 24h, timeout: 40s", "timeout: 20s", "timeout: 50s"),
		"K3_an_identity_that_is_the_place_at_the_broker":         {"{id: id, source: source}", `{id: "offset"}`},
		"K3_a_marker_without_an_identity":                        {"    identity: {id: id, source: source}\n", ""},
		"K3_receipts_that_nobody_watches":                        {"    alerts: {pending_age: 60s}\n", ""},
		"K3_a_call_that_adds_under_a_lease":                      callReplacements("window: 24h", "kind: external", "kind: ledger"),
		"K3_figures_on_a_public_address_without_access":          {`"LISTEN"`, "0.0.0.0:9464"},
		"K3_ids_that_are_forgotten_before_a_command_comes_again": {"kind: ledger", "kind: command", "    retention: 30d\n", ""},
	}
}
