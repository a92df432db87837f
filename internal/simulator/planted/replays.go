package planted

import "github.com/semel-go/semel/internal/simulator"

// ofReplays are faults of persons who replay what was, and of what they replay it with,
// beside live copies.
func ofReplays() []Fault {
	inReplays := func(name, law, file, before, after string) Fault {
		return inModel(name, law, simulator.Replays, file, before, after)
	}
	return []Fault{
		inReplays("a replay gives messages new identities", "law 14", "replaying.go",
			"\tl.log = append(l.log, &delivery{message: d.message,", "\tm := *d.message\n\tm.id, m.identity = m.id+\" again\", m.identity+\" again\"\n\tl.log = append(l.log, &delivery{message: &m,"),
		inReplays("a replay moves the places of live processes", "trap T45", "replaying.go",
			"l.stored = max(l.stored, position)", "l.stored = max(l.stored, position)\n\tfor _, d := range l.log[:position] {\n\t\td.of.settled = true\n\t}"),
		inReplays("a replay does not ask what became of a message", "law 12", "formers.go",
			"\tv := s.judge(m.id, e.Item.Print)\n", "\tv := store.Verdict{Kind: store.Fresh}\n\tif handOf(e.Item).delivery.of == nil {\n\t\tv = s.judge(m.id, e.Item.Print)\n\t}\n"),
		inReplays("a replay stores a place that is not settled", "law 4", "replaying.go",
			"l.store(l.settledUpTo())", "l.store(l.next)"),
		inReplays("intents of a replay without effects are sent", "E4", "intending.go",
			" || t.quiet, quiet", ", quiet"),
		inReplays("a plan takes another content for a copy", "G4", "replaying.go",
			"v := w.store.judge(m.id, print)", "v := w.store.judge(m.id, semel.Fingerprint{})"),
		inReplays("two operators make one row due, and it runs twice", "law 12", "operators.go",
			"case s.rows[r.key] != r || r.revision != revision || !r.setAside():\n\t\tw.coverage.add(\"fault\", \"an operator comes too late for a row\")\n\t\treturn false\n\tcase !marked || m.outcome != store.Parked && m.outcome != store.DeadLettered:\n", "case s.rows[r.key] != r || !marked || m.outcome == newer:\n"),
		inReplays("an operator goes on whose turn another has taken", "trap T47", "operators.go",
			"\tcase t.by != o:\n", "\tcase t.by == nil:\n"),
		inReplays("rows of one key are made due beside each other", "law 8", "operators.go",
			"\tif w.dueBefore(at.row) {\n", "\tif false {\n"),
		inReplays("nobody records who made a row due", "law 14", "operators.go",
			"\tw.acts = append(w.acts, a)\n\tw.makeDue(r)\n\treturn true\n", "\tw.makeDue(r)\n\treturn true\n"),
		inReplays("what has taken effect is edited", "G5", "operators.go",
			"case w.store.rows[r.key] != r || r.revision != revision || !r.setAside() || w.dueBefore(r):\n\t\tw.coverage.add(\"fault\", \"an operator's edit comes too late\")\n\t\treturn\n\tcase !marked || m.outcome != store.Parked && m.outcome != store.DeadLettered:\n", "case w.store.rows[r.key] != r || !marked || m.outcome == newer:\n"),
		inReplays("an edit gives its message a new identity", "law 14", "operators.go",
			"\tr.message = &edited\n", "\tedited.id, edited.identity = edited.id+\" edited\", edited.identity+\" edited\"\n\tr.message = &edited\n"),
		inReplays("a rebuild changes what live processes have written", "law 12", "rebuilding.go",
			"\tr.open()\n", "\tr.open()\n\tr.store.effects = w.store.effects\n"),
		inReplays("a generation is switched to before it has caught up", "G2", "rebuilding.go",
			"if l.settledUpTo() < w.upTo[i] {", "if l.settledUpTo() < w.upTo[i]-1 {"),
		inReplays("a generation is switched to beside open transactions", "G2", "rebuilding.go",
			"\tif len(w.store.open) > 0 {\n", "\tif false {\n"),
		inReplays("a frozen process goes on in the generation that was active", "G2", "rebuilding.go",
			"\tcase f.generation != w.active:\n", "\tcase false:\n"),
	}
}
