package planted

import "github.com/semel-go/semel/internal/simulator"

// ofIntents are faults of what is written down to be sent, and of who sends it.
func ofIntents() []Fault {
	inIntents := func(name, law, file, before, after string) Fault {
		return Fault{Name: name, Law: law, File: file, Old: before, New: after, Mode: simulator.Intents}
	}
	return []Fault{
		inIntents("each attempt writes intents of its own", "E2", "internal/intents/intents.go",
			"cause.OutputID(n.Purpose, n.Recipient)", "cause.OutputID(n.Purpose, n.Recipient+string(rune('0'+cause.Attempt)))"),
		inIntents("intents for two recipients have one id", "E2", "internal/intents/intents.go",
			"cause.OutputID(n.Purpose, n.Recipient)", "cause.OutputID(n.Purpose, \"\")"),
		inIntents("an intent is recognised by its id alone", "E1", "internal/intents/intents.go",
			"[]byte(n.Recipient), n.Body}", "[]byte(n.Recipient)}"),
		inIntents("another intent of the same id is passed over", "E1", "internal/intents/intents.go",
			"v.Kind == store.Fresh || v.Kind == store.Seen:", "v.Kind == store.Fresh || v.Kind == store.Seen || v.Kind == store.Conflict:"),
		inIntents("an intent that is written again has another content", "E2", "internal/intents/intents.go",
			"v.Kind == store.Fresh || v.Kind == store.Seen:\n", "v.Kind == store.Fresh:\n\t\tcase v.Kind == store.Seen:\n\t\t\treturn semel.Permanent(semel.ErrIntent)\n"),
		inIntents("a chosen key is not given to the other side", "E3, key", "intent.go",
			"ok && len(key) > 0 {", "ok && len(key) > 1<<20 {"),
		inIntents("an intent is there before its message's commit", "E1", "internal/simulator/intending.go",
			"\t\tt.intents = append(t.intents, fresh[i])\n", "\t\tt.intents = append(t.intents, fresh[i])\n\t\tw.receive(t)\n"),
		inIntents("who dies with his commit leaves no intents", "E1", "internal/simulator/commit.go",
			"\tw.receive(f.tx)\n", "\tif !f.p.over {\n\t\tw.receive(f.tx)\n\t}\n"),
		inIntents("what is written suppressed is sent", "E4", "internal/simulator/inbox.go",
			"return r.waits() && !r.follows() &&", "return (r.waits() || r.reason == semel.ReasonSuppressed) && !r.follows() &&"),
	}
}
