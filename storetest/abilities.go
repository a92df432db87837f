package storetest

import (
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// ability is a field of Abilities, with what a store must have for it.
type ability struct {
	name          string
	declared, has bool
	// needs is what the store must implement.
	needs string
}

func (s suite[Tx]) abilities(t *T) {
	t.Run("a_store_has_the_abilities_it_declares_and_no_others",
		"What a store declares it has, and what it does not declare it has not, so that a missing ability is an error at start.",
		func(t *T) {
			for _, a := range abilitiesOf(s.h.Can, s.h.Open(t).Store) {
				switch {
				case a.declared && !a.has:
					t.Errorf("Can.%s is declared, and the store lacks %s", a.name, a.needs)
				case !a.declared && a.has:
					t.Errorf("Can.%s is not declared, and the store has %s", a.name, a.needs)
				}
			}
		})
}

func has[I any](st any) bool {
	_, able := st.(I)
	return able
}

func abilitiesOf[Tx any](can Abilities, st store.TxStore[Tx]) []ability {
	return []ability{
		{"Inbox", can.Inbox, has[store.Inbox](st), "store.Inbox"},
		{"Leases", can.Leases, has[store.Leases](st), "store.Leases"},
		{"Streams", can.Streams, has[admin.Streams](st), "admin.Streams"},
		{"Retention", can.Retention, has[store.Reaper](st), "store.Reaper"},
		{"Days", can.Days, st.Limits().PartitionedBy != "", "store.Limits.PartitionedBy"},
		{"Calls", can.Calls, has[admin.Resolver](st), "admin.Resolver"},
		{"Steps", can.Steps, st.Limits().StepOutput > 0, "store.Limits.StepOutput above 0"},
		{"Gather", can.Gather, has[store.QueueStore[Tx]](st), "store.QueueStore"},
		{"Intents", can.Intents, hasIntents(st), "store.CallerTx or store.QueueStore, and admin.Requeuer"},
		{"Emission", can.Emission, has[admin.Emitter](st), "admin.Emitter"},
		{"Results", can.Results, hasResults(st), "store.Results"},
		{"MarkIn", can.MarkIn, has[store.CallerTx[Tx]](st), "store.CallerTx"},
		{"Positions", can.Positions, has[source.PositionStore](st), "source.PositionStore"},
		{"Offsets", can.Offsets, has[source.OffsetStore](st), "source.OffsetStore"},
		{"Controls", can.Controls, has[admin.Controls](st), "admin.Controls"},
		{"Derivations", can.Derivations, has[admin.Derivations](st), "admin.Derivations"},
		{"Edits", can.Edits, hasEdits(st), "admin.Editor"},
		{"Erasure", can.Erasure, hasErasure(st), "admin.Eraser"},
		{"Audit", can.Audit, hasAudit(st), "admin.Auditor and admin.Recorder"},
		{"Replays", can.Replays, hasReplays(st), "admin.Replays and admin.Previewer"},
		{"Generations", can.Generations, has[admin.Generations](st), "admin.Generations"},
	}
}
