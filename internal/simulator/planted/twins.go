package planted

import "github.com/semel-go/semel/internal/simulator"

// ofTwins are faults of the rules about several rows of one identity (law 16), which the
// simulator's store and all others share.
func ofTwins() []Fault {
	const suite, laws = "./storetest", "TestMemstoreKeepsTheLaws/"
	return []Fault{
		inRules("an act on a row ends the marker of another one", "law 16", "internal/sqlform/twins.go",
			"\tif !m.has(row) {\n\t\treturn false\n", "\tif !m.has(row) {\n\t\treturn true\n"),
		inRules("a discarded conflict keeps the marker of the first row", "law 16", "internal/sqlform/twins.go",
			"if said := o.State.Outcome(); !o.Conflict && said != 0 {", "if said := o.State.Outcome(); !o.Conflict && said == 0 {"),
		inRules("a row whose marker says applied runs again", "law 12", "internal/sqlform/twins.go",
			"\tcase m.Outcome == int64(store.Applied) && own && !slices.ContainsFunc(others, tookEffect):\n\t\treturn store.RowCompleted, \"\"\n", "\tcase m.Outcome == int64(store.Applied) && own && !slices.ContainsFunc(others, tookEffect):\n\t\treturn 0, \"\"\n"),
		inRules("a row whose marker says applied of another content runs", "law 12", "internal/sqlform/twins.go",
			"\tcase m.Outcome == int64(store.Applied):\n\t\treturn store.RowDiscarded,", "\tcase m.Outcome == int64(store.Applied):\n\t\treturn 0,"),
		inRules("a conflict is let run whatever becomes of the first row", "law 16", "internal/admin/twins.go",
			"\tfor i := range others {\n", "\tif true {\n\t\treturn nil\n\t}\n\tfor i := range others {\n"),
		inRules("a conflict is let run after a call of unknown outcome", "E3, window", "internal/admin/twins.go",
			"\tcase r.UnknownOutcome():\n", "\tcase false:\n"),
		inRules("a conflict is let run after steps of another row", "C11", "internal/admin/twins.go",
			"\tcase len(r.Steps) > 0:\n", "\tcase false:\n"),
		inRules("a conflict is let run after steps of a discarded row", "C11", "internal/admin/twins.go",
			"\tcase state == store.StateDiscarded && len(r.Steps) > 0:\n", "\tcase false:\n"),
		inRules("rows that were dated ahead are not cut", "trap T113", "internal/sqlform/ahead.go",
			"if by <= store.ClockSlack {", "if by <= 1<<62 {").withClocks(),
		inRules("a window is measured by a clock that was set back", "E3, window", "internal/calls/calls.go",
			"\t\treturn Unmeasured\n", "\t\treturn 0\n").withClocks(),
		inPackage("a call that was dated in the future counts as recent once that time is reached", "E3, trap T113", "internal/calls/calls.go",
			"if first.Sub(now) > store.ClockSlack {", "if false {",
			"./internal/calls", "TestHowLongAgoAFirstCallWasBegun/E3_trap_T113_also_when_it_is_as_late_again"),
		inRules("a conflict is let run whose first content is applied", "law 12", "internal/admin/twins.go",
			"\tcase marker == store.Applied:\n", "\tcase false:\n"),
		inPackage("memstore: a discard ends the marker of another row", "law 16", "memstore/twins.go",
			"if !s.owns(r) || m.outcome == store.Applied {", "if m.outcome == store.Applied {",
			suite, laws+"law_16_a_discard_of_the_first_row_leaves_the_marker_of_a_conflict_that_waits"),
		inPackage("memstore: a conflict is let run whatever the other rows say", "law 16", "memstore/twins.go",
			"\tif err := s.mayRun(r, others); err != nil {\n", "\tif err := s.mayRun(r, others); err != nil && false {\n",
			suite, laws+"law_16_no_conflict_runs_while_of_the_first_content/a_step_of_it_took_effect"),
		inPackage("memstore: a row is freed from a gap without a look at its marker", "law 16", "memstore/streams.go",
			"case r.State == store.StateParked && (!s.owns(r)", "case false && (!s.owns(r)",
			suite, laws+"law_16_what_was_parked_for_a_gap_stays_beside_a_conflict_that_is_applied_when_the_version_comes"),
	}
}

// inRules is a fault of a rule that the simulator's store shares with the others.
func inRules(name, law, file, before, after string) Fault {
	return Fault{Name: name, Law: law, File: file, Old: before, New: after, Mode: simulator.Twins}
}

// withClocks has a fault be looked for where the store's clock jumps.
func (f Fault) withClocks() Fault {
	f.Mode = simulator.Clocks
	return f
}
