package storetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// heedless keeps the progress of a replay whoever tells it.
type heedless struct {
	*memstore.Store
	tokens *sync.Map
}

func (s heedless) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	n, err := s.Store.NewReplay(ctx, r, t, lease, a)
	s.tokens.Store(n, t)
	return n, err
}

func (s heedless) SaveReplay(ctx context.Context, number int64, _ store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	t, _ := s.tokens.Load(number)
	token, _ := t.(store.Token)
	return s.Store.SaveReplay(ctx, number, token, lease, p)
}

// crowded lets any number of replays of a consumer be open, each in a generation of its own.
type crowded struct{ *memstore.Store }

func (s crowded) NewReplay(ctx context.Context, r admin.Replay, t store.Token, lease time.Duration, a store.Act) (int64, error) {
	for {
		n, err := s.Store.NewReplay(ctx, r, t, lease, a)
		if err == nil {
			return n, nil
		}
		r.Generation++
	}
}

// unheard does not tell who runs a replay that it is to stop.
type unheard struct{ *memstore.Store }

func (s unheard) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	_, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	return admin.ReplayRunning, err
}

// undying resumes what is done.
type undying struct{ *memstore.Store }

func (s undying) TakeReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, a store.Act) (admin.Replay, error) {
	r, err := s.Store.TakeReplay(ctx, number, t, lease, a)
	if err == nil {
		return r, nil
	}
	return s.Replay(ctx, number)
}

// talkative records an act whenever progress is kept.
type talkative struct{ *memstore.Store }

func (s talkative) SaveReplay(ctx context.Context, number int64, t store.Token, lease time.Duration, p admin.ReplayProgress) (admin.ReplayState, error) {
	state, err := s.Store.SaveReplay(ctx, number, t, lease, p)
	if err != nil {
		return state, err
	}
	return state, s.Record(ctx, store.Act{Verb: "replay save", Who: "nobody"})
}

// optimist foretells everything fresh; blunt writes what it is asked.
type (
	optimist struct{ *memstore.Store }
	blunt    struct{ *memstore.Store }
)

func (s optimist) Preview(_ context.Context, _ string, _ int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(all))
	for i := range verdicts {
		verdicts[i].Kind = store.Fresh
	}
	return verdicts, nil
}

func (s blunt) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts, err := s.Store.Preview(ctx, consumer, generation, all)
	for i, v := range verdicts {
		if v.Kind == store.Fresh {
			scope, err := s.Scope(ctx, consumer, all[i].Source, generation)
			if err != nil {
				return nil, err
			}
			m := all[i].Mark
			m.Scope = scope
			b, _, err := s.Begin(ctx, store.TxOptions{}, []store.Mark{m})
			if err != nil {
				return nil, err
			}
			b.Commit(ctx, store.Ending{})
		}
	}
	return verdicts, err
}

var replayFaults = []fault{
	{"progress is kept whoever tells it", "law_5_a_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return heedless{s, &sync.Map{}}
	}},
	{"two replays of a consumer begin", "trap_T47_one_replay", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return crowded{s} }},
	{"who runs a replay does not hear of its stop", "G1_a_replay_is_stopped", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return unheard{s} }},
	{"what is done is resumed", "G1_what_is_done", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return undying{s} }},
	{"progress is recorded as an act", "law_14_who_replays", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return talkative{s} }},
	{"everything is foretold fresh", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return optimist{s} }},
	{"what is asked is written", "G4_what_is_foretold", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return blunt{s} }},
}
