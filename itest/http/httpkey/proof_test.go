package httpkey

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
)

var (
	orders = flag.Int("orders", 400, "how many orders the proof places")
	stops  = flag.Int("stops", 14, "minimum number of kills and freezes")
	seed   = flag.Uint64("seed", 1, "draws the clients' targets and the duration of freezes")
)

// slot holds the current process; after a process is killed, the slot gets a new one.
type slot struct {
	proxy *pgproxy.Proxy
	naive bool
	mutex sync.Mutex
	now   *process // the current process; guarded by mutex
}

func (s *slot) process() *process {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.now
}

func (s *slot) start(t *testing.T) {
	p := start(t, order{DSN: s.proxy.DSN(), Naive: s.naive})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now = p
}

// fleet has two processes of the API, their clients, and the goroutine that kills and freezes the processes.
type fleet struct {
	orders         int64 // number of orders to place
	stops          int   // how often a process is killed or frozen at least
	points         []point
	naive          bool // whether the processes work without a guard
	slots          [2]*slot
	next           atomic.Int64 // number of the next order
	repeats        atomic.Int64 // number of answers that were not final
	contradictions atomic.Int64
	curls          atomic.Int64
	mutex          sync.Mutex
	stopped        map[string]int // number of stops by point and kind; guarded by mutex
}

func TestProofEachOrderOnceUnderKillsAndFreezes(t *testing.T) {
	f := &fleet{orders: int64(*orders), stops: *stops, points: points}
	placed, different, contradictions := f.run(t)
	if placed != different || int64(placed) < f.orders || contradictions != 0 {
		t.Errorf("%d orders were placed, %d of them different, of %d that were sent; %d had two answers", placed, different, f.next.Load(), contradictions)
	}
	f.report(t, placed)
}

func TestTheProofFindsAnAPIWithoutAGuard(t *testing.T) {
	f := &fleet{orders: 50, stops: 4, points: points[len(points)-1:], naive: true}
	if placed, different, contradictions := f.run(t); placed == different || contradictions == 0 {
		t.Errorf("%d orders were placed, %d of them different; %d had two answers", placed, different, contradictions)
	}
}

// run places the orders. The results are the number of rows, the number of different orders, and the number of answers
// that differed from an earlier answer to the same request.
func (f *fleet) run(t *testing.T) (placed, different, contradictions int) {
	dsn := services.Postgres(t)
	services.Hurry(t, dsn)
	pool := openPool(t, dsn)
	must.Get(pool.pool.Exec(t.Context(), "create sequence numbers"))(t)
	f.stopped = map[string]int{}
	for i := range f.slots {
		f.slots[i] = &slot{proxy: pgproxy.Start(t, dsn), naive: f.naive}
		f.slots[i].start(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { f.order(ctx, t, rand.New(rand.NewPCG(*seed, uint64(i)))) })
	}
	f.stop(ctx, t, rand.New(rand.NewPCG(*seed, 99)))
	clients.Wait()
	must.OK(t, pool.pool.QueryRow(t.Context(), "select count(*), count(distinct name) from effects").Scan(&placed, &different))
	return placed, different, int(f.contradictions.Load())
}

func (f *fleet) report(t *testing.T, placed int) {
	t.Logf("%d orders, each once and with one answer; %d answers were not final; curl asked %d times; %d stops:", placed, f.repeats.Load(), f.curls.Load(), f.total())
	for _, at := range f.points {
		t.Logf("%-28s killed %d times, frozen %d times", at.name, f.stopped[at.name+" killed"], f.stopped[at.name+" frozen"])
	}
}

// nextOrder returns the number of the next order, or false if all orders are placed and no process remains to be
// stopped.
func (f *fleet) nextOrder(ctx context.Context) (int64, bool) {
	f.mutex.Lock()
	enough := f.total() >= f.stops
	f.mutex.Unlock()
	n := f.next.Add(1)
	return n, ctx.Err() == nil && (n <= f.orders || !enough)
}

func (f *fleet) total() (n int) {
	for _, times := range f.stopped {
		n += times
	}
	return n
}

// order places orders one after the other, and repeats requests as the contract requires.
func (f *fleet) order(ctx context.Context, t *testing.T, draw *rand.Rand) {
	for {
		n, more := f.nextOrder(ctx)
		if !more {
			return
		}
		key, first := "order "+strconv.FormatInt(n, 10), answer{}
		for range 1 + draw.IntN(3) { // a client may repeat a request that was answered
			a, ok := f.insist(ctx, key, draw)
			switch {
			case !ok:
				t.Errorf("%s had no answer", key)
				return
			case first.Body == "":
				first = a
			case a.Body != first.Body:
				if f.contradictions.Add(1); !f.naive {
					t.Errorf("%s is answered with %q and with %q", key, first.Body, a.Body)
				}
			}
		}
	}
}

// insist repeats a request until its answer is final.
func (f *fleet) insist(ctx context.Context, key string, draw *rand.Rand) (answer, bool) {
	for ctx.Err() == nil {
		one, gone := context.WithTimeout(ctx, time.Second)
		p := f.slots[draw.IntN(2)].process()
		ask := p.ask
		if draw.IntN(10) == 0 {
			f.curls.Add(1)
			ask = p.curl
		}
		a, err := ask(one, key)
		if gone(); err == nil && a.Status == http.StatusCreated {
			return a, true
		}
		f.repeats.Add(1)
		processes.Pause(ctx, time.Duration(draw.IntN(20))*time.Millisecond)
	}
	return answer{}, false
}

// curl sends a request with the command curl.
func (p *process) curl(ctx context.Context, key string) (answer, error) {
	text, err := exec.CommandContext(ctx, "curl", "-s", "-w", "\n%{http_code}", "-H", "X-Account: a", "-H", httpkey.Header+`: "`+key+`"`, "-H", "Content-Type: text/plain", "--data-binary", key, p.url).Output()
	if err != nil {
		return answer{}, err
	}
	at := bytes.LastIndexByte(text, '\n')
	status, err := strconv.Atoi(string(text[at+1:]))
	return answer{Status: status, Body: string(text[:at])}, err
}

// stop kills and freezes processes at each point in turn.
func (f *fleet) stop(ctx context.Context, t *testing.T, draw *rand.Rand) {
	for i := 0; i < f.stops && ctx.Err() == nil; i++ {
		at, frozen := f.points[(i/2)%len(f.points)], i%2 == 1
		s := f.slots[draw.IntN(2)]
		rule := at.hold(s.proxy)
		met, late := context.WithTimeout(ctx, time.Minute)
		err := rule.Wait(met)
		if late(); err != nil {
			rule.Remove()
			t.Errorf("nobody came to %q", at.name)
			continue
		}
		p, how := s.process(), " killed"
		if frozen {
			how = " frozen"
			_ = p.Process.Signal(syscall.SIGSTOP)
			rule.Remove()
			processes.Pause(ctx, time.Duration(draw.IntN(1500))*time.Millisecond)
			_ = p.Process.Signal(syscall.SIGCONT)
		} else {
			p.kill()
			rule.Remove()
			s.start(t)
		}
		f.mutex.Lock()
		f.stopped[at.name+how]++
		f.mutex.Unlock()
	}
}
