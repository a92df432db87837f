package httpkey

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/leasedkey"
)

// end is the way in which a handler ends.
type end string

const (
	well    end = "201"
	refusal end = "422"
	later   end = "429"
	failure end = "500"
	panics  end = "panic"
	late    end = "time-out"
	gone    end = "client gone"
)

// state is the state of a key when a request arrives.
type state string

const (
	unused    state = "new"
	kept      state = "kept"
	keptError state = "kept error"
	released  state = "released"
	failed    state = "failed"
	inDoubt   state = "in doubt"
	here      state = "in flight here"
	elsewhere state = "in flight elsewhere"
)

// request is the kind of request that arrives with the key.
type request string

const (
	same        request = "same"
	otherBody   request = "other body"
	otherRoute  request = "other route"
	otherCaller request = "other caller"
)

// fate is the result that a request must have.
type fate struct {
	status   int
	code     string // code in the problem document of the answer
	runs     bool
	replayed bool
}

var (
	isReplayed  = fate{status: 201, replayed: true}
	isRefusal   = fate{status: 422, replayed: true}
	isMismatch  = fate{status: 422, code: "idempotency-key-reused"}
	isInFlight  = fate{status: 409, code: "request-in-progress"}
	isUncertain = fate{status: 409, code: "outcome-unknown"}
	isRun       = fate{runs: true}
)

// want returns the result that a request must have if its key is in this state.
func want(s *storeFixture, st state, r request) fate {
	if r == otherCaller || st == unused {
		return isRun // the keys of different callers are independent
	}
	if r != same {
		switch {
		case s.isLeased(), st == kept, st == keptError, st == here:
			return isMismatch
		case st == elsewhere:
			return isInFlight // the outcome is known only when the first request has ended
		}
		return isRun // the first request was rolled back, so the handler runs again
	}
	switch st {
	case kept:
		return isReplayed
	case keptError:
		return isRefusal
	case here, elsewhere:
		return isInFlight
	case inDoubt:
		return isUncertain
	}
	return isRun
}

// answer returns the answer that a request must get when its handler runs. The result kept is true if the store keeps
// this answer.
func (e end) answer() (status int, code string, kept bool) {
	switch e {
	case refusal:
		return 422, "", true
	case later:
		return 429, "", false
	case failure:
		return 500, "", false
	case panics:
		return 500, "handler-failed", false
	case late:
		return 504, "handler-timed-out", false
	}
	return 201, "", true
}

// script contains the handler's instructions for one request.
type script struct {
	end     end
	gone    context.CancelFunc
	ran     int
	unknown bool          // the value of Unknown in the last attempt
	entered chan struct{} // nil, or closed when the handler has begun
	leave   chan struct{} // the handler waits until this channel is closed
}

type scriptKey struct{}

func (s *storeFixture) serve(w http.ResponseWriter, r *http.Request) {
	p := r.Context().Value(scriptKey{}).(*script)
	p.ran++
	a, _ := httpkey.AttemptFrom(r.Context())
	p.unknown = a.Unknown
	if s.writeEffect != nil {
		if err := s.writeEffect(r.Context(), a.Caller+a.Key); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
			return
		}
	}
	if p.entered != nil {
		close(p.entered)
		<-p.leave
	}
	switch p.end {
	case panics:
		panic("a handler's own")
	case late:
		<-r.Context().Done()
		return
	case gone:
		p.gone()
	}
	body, _ := io.ReadAll(r.Body)
	status, _, _ := p.end.answer()
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// bench is a test case with two guards, as in two processes.
type bench struct {
	*storeFixture
	key         string
	here, there http.Handler
}

func open(t *testing.T, s *storeFixture, key string, e end, st state) *bench {
	t.Helper()
	l := lease()
	if st == inDoubt {
		l.Window = leasedkey.Never
	}
	quick := config() // configuration for a handler that never returns
	switch {
	case e == late && st == here:
		quick.Timeout = time.Second // with the other configuration, requests in progress outlast the case
	case e == late:
		quick.Timeout = 300 * time.Millisecond
	}
	b := &bench{storeFixture: s, key: key}
	for h, c := range map[*http.Handler]httpkey.Config{&b.here: quick, &b.there: config()} {
		g := must.Get(s.newGuard(c, l))(t)
		*h = g.ProtectFunc(s.serve)
	}
	return b
}

func (b *bench) send(to http.Handler, r request, p *script) *httptest.ResponseRecorder {
	path, body, caller := "/orders", "tea", "a"
	switch r {
	case otherBody:
		body = "coffee"
	case otherRoute:
		path = "/refunds"
	case otherCaller:
		caller = "b"
	}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), scriptKey{}, p))
	defer cancel()
	p.gone = cancel
	q := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)).WithContext(ctx)
	q.Header.Set("X-Account", caller)
	q.Header.Set(httpkey.Header, `"`+b.key+`"`)
	w := httptest.NewRecorder()
	to.ServeHTTP(w, q)
	return w
}

// bring brings the key into a state. The returned function ends the requests in progress and waits for their end.
func (b *bench) bring(t *testing.T, st state) (end func()) {
	t.Helper()
	ends := map[state]ending{kept: {well, b.here}, keptError: {refusal, b.here}, released: {later, b.here}, failed: {failure, b.here}, inDoubt: {failure, b.here}, here: {well, b.here}, elsewhere: {well, b.there}}
	how, some := ends[st]
	if !some {
		return func() {}
	}
	p := &script{end: how.end}
	if st != here && st != elsewhere {
		b.send(how.to, same, p)
		if p.ran != 1 {
			t.Fatalf("the handler ran %d times before the case began", p.ran)
		}
		return func() {}
	}
	p.entered, p.leave = make(chan struct{}), make(chan struct{})
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() { done <- b.send(how.to, same, p) }()
	<-p.entered
	return func() {
		close(p.leave)
		if w := <-done; w.Code != 201 || p.ran != 1 {
			t.Errorf("what was in flight ended as %d, after %d runs", w.Code, p.ran)
		}
	}
}

// ending is the way in which a request ends, perhaps in another process.
type ending struct {
	end end
	to  http.Handler
}

// mustWait reports whether a request must wait until the request in progress has ended.
func mustWait(s *storeFixture, st state, r request) bool {
	return s.singleWriter && !s.isLeased() && (st == elsewhere || st == here && r == otherCaller)
}

func TestF1EveryStateRequestAndEnd(t *testing.T) {
	all := openers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, number := all[name](t), 0
			for _, st := range []state{unused, kept, keptError, released, failed, inDoubt, here, elsewhere} {
				for _, r := range []request{same, otherBody, otherRoute, otherCaller} {
					for _, e := range []end{well, refusal, later, failure, panics, late, gone} {
						if number++; st == inDoubt && !s.isLeased() {
							continue // after a rollback the outcome is known
						}
						t.Run(fmt.Sprintf("F1_%s_%s_%s", st, r, e), func(t *testing.T) { judge(t, open(t, s, fmt.Sprint(number), e, st), st, r, e) })
					}
				}
			}
		})
	}
}

// judge sends a request, repeats the request, and checks both results.
func judge(t *testing.T, b *bench, st state, r request, e end) {
	land := b.bring(t, st)
	expected := want(b.storeFixture, st, r)
	if mustWait(b.storeFixture, st, r) {
		land()
		land, st = func() {}, kept
		expected = want(b.storeFixture, st, r)
	}
	p := &script{end: e}
	w := b.send(b.here, r, p)
	if land(); !expected.runs {
		expectAnswer(t, "the request", w, p, expected, 0)
		b.checkEffects(t, st, r, 0)
		return
	}
	status, code, keeps := e.answer()
	expectAnswer(t, "the request", w, p, fate{status: status, code: code}, 1)
	if told := b.isLeased() && r == same && st == failed; p.unknown != told {
		t.Errorf("the handler saw an unknown outcome: %t", p.unknown)
	}
	effects := 0
	if status == 201 {
		effects = 1
	}
	b.checkEffects(t, st, r, effects)
	repeated := &script{end: well}
	w = b.send(b.there, r, repeated)
	if keeps {
		expectAnswer(t, "its copy", w, repeated, fate{status: status, replayed: true}, 0)
		b.checkEffects(t, st, r, effects)
		return
	}
	if st == inDoubt && e != later {
		expectAnswer(t, "its copy", w, repeated, isUncertain, 0) // this guard does not repeat a request that may have had an effect
		return
	}
	expectAnswer(t, "its copy", w, repeated, fate{status: 201}, 1)
	b.checkEffects(t, st, r, 1)
}

func expectAnswer(t *testing.T, what string, w *httptest.ResponseRecorder, p *script, f fate, runs int) {
	t.Helper()
	replayed := w.Header().Get(httpkey.ReplayedHeader) == "true"
	if w.Code != f.status || replayed != f.replayed || p.ran != runs || f.code != "" && !strings.Contains(w.Body.String(), `"code":"`+f.code+`"`) {
		t.Errorf("%s: %d (replayed: %t) after %d runs; want %+v and %d\n%s", what, w.Code, replayed, p.ran, f, runs, w.Body)
	}
	if problem := w.Header().Get("Content-Type") == "application/problem+json"; problem != (f.code != "") {
		t.Errorf("%s: a problem: %t, code %q", what, problem, f.code)
	}
}

// checkEffects checks the number of effects of the request that the case tests. Effects of the request that
// brought the key into its state do not count.
func (b *bench) checkEffects(t *testing.T, st state, r request, want int) {
	t.Helper()
	if b.isLeased() {
		return
	}
	caller := "a"
	if r == otherCaller {
		caller = "b"
	} else if st == kept || st == here || st == elsewhere {
		want++
	}
	if n := b.count(t, caller+b.key); n != want {
		t.Errorf("%d effects, want %d", n, want)
	}
}
