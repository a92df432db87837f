package storetest

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// fenceTime is the duration of fences that the case itself removes.
const fenceTime = time.Minute

// testGenerations tests the interface admin.Generations.
func (s suite[Tx]) testGenerations(t *T) {
	t.Run("G2_a_consumer_has_one_active_generation_and_opens_the_next",
		"The first generation is 0 and active; at most one is being built at a time, and the store keeps who opened it and why.", func(t *T) {
			h := s.openGenerations(t)
			t.wantErr("a consumer without generations", errOf(h.gens.OpenGeneration(t.context(), "other", order("rebuild", "ana", "x"))), semel.ErrState)
			n, err := h.gens.OpenGeneration(t.context(), "billing", order("rebuild", "ana", "a new column"))
			t.must(err)
			t.wantErr("a second open generation", errOf(h.gens.OpenGeneration(t.context(), "billing", order("rebuild", "bo", "too"))), semel.ErrState)
			t.must(h.gens.BeginGenerations(t.context(), "billing"))
			h.wantStates(generations.Active, generations.Building)
			all, _ := h.gens.Generations(t.context(), "billing")
			if g := all[n]; n != 1 || g.By != "ana" || g.Why != "a new column" || g.Opened.IsZero() || g.Since.IsZero() || g.Fenced != 0 {
				t.Errorf("%d: %+v", n, g)
			}
		})
	t.Run("G2_a_batch_needs_its_generation_in_the_named_state",
		"A batch begins only while its generation has the state that the batch names; otherwise no transaction is open, and the store counts as down.", func(t *T) {
			h := s.openGenerations(t)
			h.open()
			h.wantWorks(0, generations.Active)
			h.wantWorks(1, generations.Building)
			h.wantRefused(1, generations.Active)
			h.wantRefused(0, generations.Building)
			h.wantRefused(2, generations.Active)
		})
	t.Run("G2_a_switch_needs_both_fences",
		"A switch needs the fences; after it only the new generation accepts batches, and the old one is kept.", func(t *T) {
			h := s.openGenerations(t)
			h.open()
			h.wantNoSwitch()
			t.must(h.gens.FenceGeneration(t.context(), "billing", 0, fenceTime))
			h.wantNoSwitch()
			h.wantRefused(0, generations.Active)
			h.wantWorks(1, generations.Building)
			t.must(h.gens.FenceGeneration(t.context(), "billing", 1, fenceTime))
			h.wantRefused(1, generations.Building)
			t.must(h.gens.SwitchGeneration(t.context(), "billing", 0, 1, order("switch", "ana", "x")))
			h.wantStates(generations.Old, generations.Active)
			h.wantRefused(0, generations.Active)
			h.wantRefused(1, generations.Building)
			h.wantWorks(1, generations.Active)
		})
	t.Run("law_14_who_opens_switches_and_drops_a_generation_and_why_is_recorded",
		"Each command records an act without a row that names the consumer and the generation, in the same transaction.", s.testGenerationActs)
	t.Run("G2_a_fence_ends_by_itself_or_is_lifted",
		"A fence of a process that died ends at its own time limit; a second fence of the same generation is refused.", func(t *T) {
			h := s.openGenerations(t)
			h.open()
			t.must(h.gens.FenceGeneration(t.context(), "billing", 0, fenceTime))
			t.wantErr("a second fence", h.gens.FenceGeneration(t.context(), "billing", 0, fenceTime), semel.ErrState)
			t.must(h.gens.LiftFences(t.context(), "billing"))
			h.wantWorks(0, generations.Active)
			err := h.gens.FenceGeneration(t.context(), "billing", 0, time.Millisecond)
			if err != nil && !errors.Is(err, semel.ErrState) {
				t.Fatal(err)
			}
			h.waitUntil(func() bool { return h.works(0, generations.Active) == nil })
			t.must(h.gens.FenceGeneration(t.context(), "billing", 1, fenceTime))
			h.wantNoSwitch()
		})
	t.Run("trap_T113_a_fence_dated_in_the_future_is_cut_to_the_longest",
		"A fence that was set while the clock was ahead holds, but not longer than the longest fence.", s.testFencedAhead)
	t.Run("law_12_a_fence_waits_for_open_batches",
		"While a fence is set, no batch that began before it is open, however long its process was frozen.", s.testFenceWaits)
	if !s.h.Can.OneConsumer {
		t.Run("G2_the_fences_of_another_consumer_stay",
			"Lifting the fences of one consumer, or switching it, does not allow batches of another consumer that is being switched.", func(t *T) {
				h := s.openGenerations(t)
				t.must(h.gens.BeginGenerations(t.context(), "other"))
				t.must(h.gens.FenceGeneration(t.context(), "other", 0, fenceTime))
				t.must(h.gens.LiftFences(t.context(), "billing"))
				if all, err := h.gens.Generations(t.context(), "other"); err != nil || len(all) != 1 || all[0].Fenced == 0 {
					t.Errorf("the generations of the other consumer are %+v: %v", all, err)
				}
				w := generations.Working{Consumer: "other", Number: 0, In: generations.Active}
				if _, _, err := h.Store.Begin(t.context(), store.TxOptions{Working: w}, h.markAll("asks")); !errors.Is(err, generations.ErrNotUsable) {
					t.Errorf("a batch of the other consumer: %v", err)
				}
			})
		t.Run("P4_G2_of_a_dropped_generation_no_message_and_no_result_is_left",
			"Dropping a generation removes its rows, their bodies before edits, and its results.", s.testForgottenContents)
		t.Run("G2_a_dropped_generation_is_removed_in_slices",
			"Dropping a generation removes its markers in portions and nothing of another generation; an active generation cannot be dropped.", s.testForgotten)
	}
}

// testFencedAhead tests an unfinished switch of generations: its process set a fence while the store's clock was ahead,
// and was then killed.
func (s suite[Tx]) testFencedAhead(t *T) {
	h := s.openGenerations(t)
	if err := h.gens.FenceGeneration(t.context(), "billing", 0, admin.LongestFence+time.Second); err == nil {
		t.Error("a fence lasts longer than admin.LongestFence")
	}
	if h.Ahead == nil {
		return
	}
	h.open()
	t.must(h.gens.FenceGeneration(t.context(), "billing", 0, fenceTime))
	h.Ahead(t, aDay)
	for range 2 {
		all, err := h.gens.Generations(t.context(), "billing")
		t.must(err)
		if left := all[0].Fenced; left > admin.LongestFence || left < admin.LongestFence-fenceTime {
			t.Errorf("the fence ends in %v, want %v", left, admin.LongestFence)
		}
		h.wantRefused(0, generations.Active)
	}
	h.Ahead(t, fenceTime-admin.LongestFence) // shifts the stored times by this difference
	if all, err := h.gens.Generations(t.context(), "billing"); err != nil || all[0].Fenced > fenceTime {
		t.Errorf("the fence is shortened in the answer, and ends in %v: %v", all[0].Fenced, err)
	}
}

// testFenceWaits leaves a batch open while another goroutine sets a fence: the fence must wait for the batch.
func (s suite[Tx]) testFenceWaits(t *T) {
	h := s.openGenerations(t)
	marks := h.markAll("frozen")
	b, _, err := h.Store.Begin(t.context(), store.TxOptions{Working: h.working(0, generations.Active)}, marks)
	t.must(err)
	var committed atomic.Bool
	stood := make(chan error, 1)
	ctx := t.context()
	go func() {
		err := h.gens.FenceGeneration(ctx, "billing", 0, fenceTime)
		if err == nil && !committed.Load() {
			err = errors.New("the fence is set while a batch is open")
		}
		stood <- err
	}()
	if !s.h.Can.OneWriter {
		for range 20 { // a fence that does not wait would be set by now
			h.waitUntil(func() bool { return h.works(0, generations.Active) != nil })
		}
	}
	t.must(h.Effect(t.context(), b.Tx(0), "frozen"))
	committed.Store(true)
	h.commit(b, store.Ending{})
	t.must(<-stood)
	h.wantRefused(0, generations.Active)
	h.wantCount("frozen", 1)
}

// testForgotten drops a generation that has three markers.
func (s suite[Tx]) testForgotten(t *T) {
	h := s.openGenerations(t)
	h.open()
	h.deliver(h.markAll("a", "b", "c")...)
	own := h.scope
	h.scope = h.scopeOf(admin.GenerationName("billing", 1), "shop", 0)
	h.deliver(h.markAll("a", "b", "c")...)
	t.wantErr("dropping the active generation", h.gens.EndGeneration(t.context(), "billing", 0, order("drop", "ana", "x")), semel.ErrState)
	t.wantErr("removing a generation that is not dropped", errOf(h.gens.ForgetGeneration(t.context(), "billing", 1, 2)), semel.ErrState)
	t.must(h.gens.EndGeneration(t.context(), "billing", 1, order("drop", "ana", "x")))
	h.wantRefused(1, generations.Building)
	for _, want := range []int{2, 1, 0} {
		n, err := h.gens.ForgetGeneration(t.context(), "billing", 1, 2)
		t.must(err)
		if n != want {
			t.Errorf("%d markers are removed, want %d", n, want)
		}
	}
	h.wantKinds(h.asks(h.mark("a")), fresh)
	h.scope = own
	h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
	h.wantStates(generations.Active, generations.Dropped)
	h.open()
	h.wantStates(generations.Active, generations.Dropped, generations.Building)
}

// testGenerationActs opens, switches and drops generations, and checks the audit records of the commands.
func (s suite[Tx]) testGenerationActs(t *T) {
	h := s.openGenerations(t)
	h.open()
	for n := range int64(2) {
		t.must(h.gens.FenceGeneration(t.context(), "billing", n, fenceTime))
	}
	t.must(h.gens.SwitchGeneration(t.context(), "billing", 0, 1, order("switch", "bo", "y")))
	t.must(h.gens.EndGeneration(t.context(), "billing", 0, order("drop", "cy", "z")))
	acts, err := h.inbox().Acts(t.context(), 0, 0)
	t.must(err)
	got := map[string]string{}
	for _, a := range acts {
		got[a.Verb] = a.Who
		if !strings.Contains(a.Why, "billing") || a.Row != 0 {
			t.Errorf("an act is %+v", a)
		}
	}
	if len(acts) != 3 || got["rebuild"] != "ana" || got["switch"] != "bo" || got["drop"] != "cy" {
		t.Errorf("the acts are %+v", acts)
	}
}

// testForgottenContents drops a generation that has a row and, if the store stores results, a result.
func (s suite[Tx]) testForgottenContents(t *T) {
	h := s.openGenerations(t)
	h.open()
	name := admin.GenerationName("billing", 1)
	h.scope = h.scopeOf(name, "shop", 0)
	r := h.park("a")
	if s.h.Can.Edits {
		r = h.edits(r, "b")
	}
	kept := h.markAll("kept")
	if s.h.Can.Results {
		b, _ := h.begin(kept...)
		h.keeps(b, 0, kept[0], []byte("made"))
		h.commit(b, store.Ending{})
		h.wantResults(kept, []byte("made"))
	}
	t.must(h.gens.EndGeneration(t.context(), "billing", 1, order("drop", "ana", "x")))
	_, err := h.gens.ForgetGeneration(t.context(), "billing", 1, 1000)
	t.must(err)
	if rows := h.list(store.RowFilter{Consumer: name}); len(rows) != 0 {
		t.Errorf("there is %+v", rows)
	}
	if s.h.Can.Edits {
		if edits, err := h.editor().Edits(t.context(), r.Number, true); err != nil || len(edits) != 0 {
			t.Errorf("there are edits %+v: %v", edits, err)
		}
	}
	if s.h.Can.Results {
		h.wantResults(kept, nil)
	}
}

// generationFixture is a fixture for the consumer "billing", which has generations.
type generationFixture[Tx any] struct {
	*fixture[Tx]
	gens admin.Generations
}

func (s suite[Tx]) openGenerations(t *T) *generationFixture[Tx] {
	t.Helper()
	h := s.open(t)
	gens := h.Store.(admin.Generations)
	all, err := gens.Generations(t.context(), "billing")
	t.must(err)
	if len(all) != 0 {
		t.Errorf("a new store has %+v", all)
	}
	t.must(gens.BeginGenerations(t.context(), "billing"))
	return &generationFixture[Tx]{h, gens}
}

func (h *generationFixture[Tx]) open() {
	h.t.Helper()
	_, err := h.gens.OpenGeneration(h.t.context(), "billing", order("rebuild", "ana", "x"))
	h.t.must(err)
}

func (h *generationFixture[Tx]) working(number int64, in generations.State) generations.Working {
	return generations.Working{Consumer: "billing", Number: number, In: in}
}

// works begins a batch in a generation and rolls it back. If the batch cannot begin, works returns the error.
func (h *generationFixture[Tx]) works(number int64, in generations.State) error {
	b, _, err := h.Store.Begin(h.t.context(), store.TxOptions{Working: h.working(number, in)}, h.markAll("asks"))
	if err == nil {
		b.Rollback(h.t.context())
	}
	return err
}

func (h *generationFixture[Tx]) wantWorks(number int64, in generations.State) {
	h.t.Helper()
	if err := h.works(number, in); err != nil {
		h.t.Errorf("a batch in generation %d as %v: %v", number, in, err)
	}
}

func (h *generationFixture[Tx]) wantRefused(number int64, in generations.State) {
	h.t.Helper()
	if err := h.works(number, in); !errors.Is(err, generations.ErrNotUsable) || h.Store.Classify(err) != store.ClassDown {
		h.t.Errorf("a batch in generation %d as %v: %v, want generations.ErrNotUsable, of ClassDown", number, in, err)
	}
	h.wantKinds(h.asks(h.mark("asks")), fresh)
}

func (h *generationFixture[Tx]) wantNoSwitch() {
	h.t.Helper()
	h.t.wantErr("a switch without fences", h.gens.SwitchGeneration(h.t.context(), "billing", 0, 1, order("switch", "ana", "x")), semel.ErrState)
	h.wantStates(generations.Active, generations.Building)
}

func (h *generationFixture[Tx]) wantStates(want ...generations.State) {
	h.t.Helper()
	all, err := h.gens.Generations(h.t.context(), "billing")
	h.t.must(err)
	if len(all) != len(want) {
		h.t.Fatalf("%d generations, want %d: %+v", len(all), len(want), all)
	}
	for i, g := range all {
		if g.Number != int64(i) || g.State != want[i] {
			h.t.Errorf("generation %d is %+v, want %v", i, g, want[i])
		}
	}
}

// waitUntil calls the function reached again and again until it returns true.
func (h *generationFixture[Tx]) waitUntil(reached func() bool) {
	h.t.Helper()
	for ctx := h.t.context(); !reached(); {
		again := time.NewTimer(time.Millisecond)
		select {
		case <-again.C:
		case <-ctx.Done():
			h.t.Fatal("the condition does not become true")
		}
	}
}
