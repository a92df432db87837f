package services

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
)

// Prometheus is a Prometheus server that only one test uses.
type Prometheus struct{ privateServer }

// StartPrometheus starts a server for one test and returns when the server answers. The parameter rules contains the
// rule files by name. When the test ends, the server ends and its data are removed. The server also ends if the test's
// process dies.
func StartPrometheus(t testing.TB, configuration string, rules map[string]string) *Prometheus {
	t.Helper()
	program, err := osexec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is missing: this test starts its own server. Install it with scripts/services install prometheus")
	}
	p := &Prometheus{newPrivate(t, programs{root: Folder()})}
	t.Cleanup(p.remove)
	p.write("prometheus.yml", configuration)
	for name, text := range rules {
		p.write(name, text)
	}
	c := osexec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+p.Address(), "--log.level=warn")
	c.Dir, c.SysProcAttr = p.folder, childAttributes(nil, syscall.SIGKILL)
	p.process = startLogged(t, c, p.folder)
	for deadline := time.Now().Add(30 * time.Second); !p.ready(); time.Sleep(50 * time.Millisecond) {
		if p.process.hasEnded() || time.Now().After(deadline) {
			t.Fatalf("prometheus does not answer: %s", logEnd(p.folder))
		}
	}
	return p
}

func (p *Prometheus) write(name, text string) {
	must.OK(p.t, os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600))
}

func (p *Prometheus) ready() bool {
	answer, err := http.Get("http://" + p.Address() + "/-/ready")
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// Series is one series of a query result.
type Series struct {
	// Labels are the labels of the series. The name of the metric is in the label __name__.
	Labels map[string]string
	// Points are the values of the series, in the order of their times.
	Points []Point
}

// Point is a value and its time, in seconds since 1970.
type Point struct{ At, Value float64 }

// Range returns the values of an expression between two times, at the interval step.
func (p *Prometheus) Range(expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	return p.ask("query_range", url.Values{"query": {expr}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {fmt.Sprint(step.Seconds())}})
}

// Now returns the current value of an expression.
func (p *Prometheus) Now(expr string) ([]Series, error) {
	return p.ask("query", url.Values{"query": {expr}})
}

func stamp(t time.Time) string { return fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000) }

func (p *Prometheus) ask(what string, values url.Values) ([]Series, error) {
	answer, err := http.PostForm("http://"+p.Address()+"/api/v1/"+what, values)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  json.RawMessage   `json:"value"`
				Values []json.RawMessage `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return nil, err
	}
	if said.Error != "" {
		return nil, fmt.Errorf("prometheus rejected %s: %s", values.Get("query"), said.Error)
	}
	var all []Series
	for _, r := range said.Data.Result {
		s := Series{Labels: r.Metric}
		if r.Value != nil {
			r.Values = append(r.Values, r.Value)
		}
		for _, v := range r.Values {
			point, err := readPoint(v)
			if err != nil {
				return nil, err
			}
			s.Points = append(s.Points, point)
		}
		all = append(all, s)
	}
	return all, nil
}

// readPoint parses a pair [seconds, "value"].
func readPoint(text json.RawMessage) (Point, error) {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return Point{}, err
	}
	at, isNumber := pair[0].(float64)
	value, err := strconv.ParseFloat(fmt.Sprint(pair[1]), 64)
	if !isNumber || err != nil {
		return Point{}, fmt.Errorf("%s is not a pair of time and value", text)
	}
	return Point{at, value}, nil
}
