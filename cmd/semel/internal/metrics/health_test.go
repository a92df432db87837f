package metrics

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
)

func TestHealth(t *testing.T) {
	t.Run("K8_readiness_tells_of_each_consumer_and_liveness_of_what_a_restart_mends", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		if code, text := get(s, PathReady); code != http.StatusServiceUnavailable || !strings.Contains(text, "have not started") {
			t.Errorf("before the start: %d %s", code, text)
		}
		if code, _ := get(s, PathLive); code != http.StatusOK {
			t.Errorf("before the start it is not alive: %d", code)
		}
		s.Started(map[string]Consumer{"billing": &idleConsumer{notReady: "store: down"}, "shipping": &idleConsumer{}})
		code, text := get(s, PathReady)
		var h Health
		if err := json.Unmarshal([]byte(text), &h); err != nil || code != http.StatusServiceUnavailable || h.OK || h.Consumers["billing"].Reason != "store: down" || !h.Consumers["shipping"].OK {
			t.Errorf("%d %s: %v", code, text, err)
		}
		if code, _ := get(s, PathLive); code != http.StatusOK {
			t.Errorf("not alive while the store is down: %d", code)
		}
		s.Started(map[string]Consumer{"billing": &idleConsumer{notYet: "stuck"}})
		if code, text := get(s, PathLive); code != http.StatusServiceUnavailable || !strings.Contains(text, "stuck") {
			t.Errorf("stuck: %d %s", code, text)
		}
	})
	synctestRun(t, "K8_an_outage_of_a_store_fails_liveness_only_where_the_policy_says_so_and_when", func(t *testing.T) {
		of := func(restart time.Duration) *Server {
			return &Server{options: Options{Loopback: true, RestartOnOutage: restart, Consumers: []string{"billing"}}, opened: time.Now(), watch: newWatch([]string{"billing"})}
		}
		never, minutes := of(0), of(5*time.Minute)
		<-time.After(5 * time.Minute)
		if !never.Live().OK || minutes.Live().OK || !strings.Contains(minutes.Live().Reason, "have not started for 5m") {
			t.Errorf("before the start: %+v, %+v", never.Live(), minutes.Live())
		}
		down := &idleConsumer{notReady: "no space left", down: time.Now()}
		for _, s := range []*Server{never, minutes} {
			s.Started(map[string]Consumer{"billing": down, "shipping": &idleConsumer{}})
		}
		<-time.After(5*time.Minute - time.Second)
		if !never.Live().OK || !minutes.Live().OK {
			t.Errorf("after less: %+v, %+v", never.Live(), minutes.Live())
		}
		<-time.After(time.Second)
		h := minutes.Live()
		if !never.Live().OK || h.OK || !h.Consumers["shipping"].OK || h.Consumers["billing"].Reason != "store: no space left, for 5m (listen.restart_on_outage)" {
			t.Errorf("after as long: %+v, %+v", never.Live(), h)
		}
		w := newWatch([]string{"billing"})
		told := gatherText(t, newCollector(w, minutes.running, nil, minutes.options))
		if !strings.Contains(told, `semel_alive{consumer="billing"} 0`) {
			t.Errorf("semel_alive differs:\n%s", told)
		}
		down.down = time.Time{}
		if !minutes.Live().OK {
			t.Errorf("it works again: %+v", minutes.Live())
		}
	})
	synctestRun(t, "K8_readiness_tells_the_last_error_that_a_consumer_met", func(t *testing.T) {
		s := &Server{options: Options{Loopback: true}, watch: newWatch([]string{"billing"})}
		s.Started(map[string]Consumer{"billing": &idleConsumer{}})
		if last := s.Ready().Consumers["billing"].LastError; last != nil {
			t.Errorf("before any: %+v", last)
		}
		for _, e := range []semel.Event{
			{Kind: eventkind.Retry, Err: errors.New("the first")}, {Kind: eventkind.Retry, Err: errors.New("an\n account \x00" + strings.Repeat("ü", 400))},
			{Kind: eventkind.Committed}, {Kind: eventkind.Control, Err: errors.New("paused by ann")}, {Kind: eventkind.Duplicate, Err: errors.New("never")},
		} {
			e.Consumer = "billing@2"
			s.watch.Observe(e)
		}
		last := s.Ready().Consumers["billing"].LastError
		if last == nil || !last.At.Equal(time.Now()) || last.Event != "retry" || !strings.HasPrefix(last.Error, "an account ") || !strings.HasSuffix(last.Error, "üü…") || len([]rune(last.Error)) != mostErrorText {
			t.Errorf("it is %+v", last)
		}
	})
	t.Run("trap_T79_who_has_no_access_gets_a_bare_status", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := openServer(t, Options{TokenFile: file, Consumers: []string{"billing"}})
		s.Started(map[string]Consumer{"billing": &idleConsumer{notReady: "store: down"}})
		with := func(token string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set("Authorization", token) }
		}
		for _, wrong := range []string{"", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef", "0123456789abcdef"} {
			if code, text := get(s, PathReady, with(wrong)); code != http.StatusServiceUnavailable || text != "" {
				t.Errorf("with %q: %d %q", wrong, code, text)
			}
			if code, text := get(s, PathMetrics, with(wrong)); code != http.StatusUnauthorized || strings.Contains(text, "billing") {
				t.Errorf("with %q: %d %q", wrong, code, text)
			}
		}
		if code, text := get(s, PathReady, with("Bearer 0123456789abcdef")); code != http.StatusServiceUnavailable || !strings.Contains(text, "store: down") {
			t.Errorf("with the token: %d %q", code, text)
		}
		if code, _ := get(s, PathMetrics, with("Bearer 0123456789abcdef")); code != http.StatusOK {
			t.Errorf("with the token: %d", code)
		}
	})
	t.Run("trap_T79_a_strangers_page_has_nothing_recorded", func(t *testing.T) {
		written := 0
		s := openServer(t, Options{Loopback: true, Record: func(string) ([]string, error) { written++; return nil, nil }})
		post := func(r *http.Request) { r.Method = http.MethodPost }
		for name, value := range map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"} {
			if code, _ := get(s, PathRecord, post, func(r *http.Request) { r.Header.Set(name, value) }); code != http.StatusForbidden || written != 0 {
				t.Errorf("%s: %d, and %d were written", name, code, written)
			}
		}
		if code, _ := get(s, PathRecord, post); code != http.StatusOK || written != 1 {
			t.Errorf("semel consumers record: %d, and %d were written", code, written)
		}
	})
	t.Run("trap_T79_a_strangers_name_for_this_machine_reads_nothing", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		s.Started(map[string]Consumer{"billing": &idleConsumer{notReady: "store: down"}})
		named := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
		if code, text := get(s, PathReady, named("evil.example:9464")); code != http.StatusServiceUnavailable || text != "" {
			t.Errorf("%d %q", code, text)
		}
		for _, host := range []string{"localhost:9464", "127.0.0.1", "[::1]:9464"} {
			if _, text := get(s, PathReady, named(host)); text == "" {
				t.Errorf("%s counts as this machine", host)
			}
		}
	})
}
