package httphandler

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

var discardLogger = log.New(io.Discard, "", 0)

func TestTheMeaningOfAStatus(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.Header.Get("X-Status"))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	})
	t.Run("C4_E3_each_status_is_done_again_unknown_or_for_good", func(t *testing.T) {
		for status := 200; status < 600; status++ {
			h := e.handler(t, func(c *Config) { c.Headers = []Header{{"X-Status", strconv.Itoa(status)}} })
			want := semel.DecidePermanent
			switch {
			case status < 300:
				want = 0
			case status >= 500, status == 408, status == 409: // with these statuses, the outcome of the call is unknown
				want = semel.DecideUnknown
			case status == 425, status == 429:
				want = semel.DecideRetry
			}
			words := ""
			if want != 0 {
				words = fmt.Sprintf("answered %d", status)
			}
			before := e.calls.Load()
			h.wantError(t, want, words)
			if n := e.calls.Load() - before; n != 1 {
				t.Errorf("%d: %d calls: a redirect was followed", status, n)
			}
			h.transport.CloseIdleConnections()
		}
	})
	t.Run("a_redirect_says_what_to_do", func(t *testing.T) {
		e.handler(t, func(c *Config) { c.Headers = []Header{{"X-Status", "308"}} }).wantError(t, semel.DecidePermanent, "redirects are not followed")
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	there := now.Add(-7 * time.Hour) // the time of the server's clock, which is seven hours slow
	for name, c := range map[string]struct {
		after, date string
		want        time.Duration
	}{
		"none":                               {want: 0},
		"seconds":                            {after: "120", want: 2 * time.Minute},
		"zero":                               {after: "0", want: 0},
		"more digits than a number can have": {after: strings.Repeat("9", 400), want: time.Hour},
		"more than the maximum wait":         {after: "3601", want: time.Hour},
		"negative":                           {after: "-5", want: 0},
		"with a sign":                        {after: "+5", want: 0},
		"a fraction":                         {after: "1.5", want: 0},
		"words":                              {after: "soon", want: 0},
		"a date":                             {after: now.Add(90 * time.Second).Format(http.TimeFormat), want: 90 * time.Second},
		"a date by the server's clock":       {after: there.Add(time.Minute).Format(http.TimeFormat), date: there.Format(http.TimeFormat), want: time.Minute},
		"a date in a response without a valid Date": {after: now.Add(time.Minute).Format(http.TimeFormat), date: "yesterday", want: time.Minute},
		"a date in the past":                        {after: now.Add(-time.Minute).Format(http.TimeFormat), want: 0},
		"a date in the format of RFC 850":           {after: now.Add(time.Minute).Format(time.RFC850), want: time.Minute},
		"a date in the format of asctime":           {after: now.Add(time.Minute).Format(time.ANSIC), want: time.Minute},
		"a date too far in the future":              {after: now.AddDate(200, 0, 0).Format(http.TimeFormat), want: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			h := handlerOf(t, "http://localhost:1")
			header := http.Header{"Retry-After": {c.after}, "Date": {c.date}}
			d, _ := decisionOf(t, h.classifyAnswer(answer{status: 429, header: header}, now))
			if d.Decision != semel.DecideRetry || d.After != c.want {
				t.Errorf("%v after %v, want %v", d.Decision, d.After, c.want)
			}
		})
	}
	t.Run("it_counts_with_every_status_that_is_tried_again_and_with_no_other", func(t *testing.T) {
		h := handlerOf(t, "http://localhost:1")
		for status, want := range map[int]time.Duration{503: time.Second, 409: time.Second, 425: time.Second, 500: time.Second, 400: 0, 301: 0} {
			d, _ := decisionOf(t, h.classifyAnswer(answer{status: status, header: http.Header{"Retry-After": {"1"}}}, now))
			if d.After != want {
				t.Errorf("%d: after %v", status, d.After)
			}
		}
	})
}

func TestErrorsShowTheTitleOfAProblem(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, want string }{
		"a problem":                  {"application/problem+json; charset=utf-8", `{"title":"No such card","detail":"` + secretText + `"}`, "422 Unprocessable Entity: No such card"},
		"of another type":            {"application/json", `{"title":"` + secretText + `"}`, "422 Unprocessable Entity"},
		"a text":                     {"text/plain", secretText, "422 Unprocessable Entity"},
		"no JSON":                    {"application/problem+json", secretText, "422 Unprocessable Entity"},
		"a title that is a number":   {"application/problem+json", `{"title":17}`, "422 Unprocessable Entity"},
		"of several lines":           {"application/problem+json", `{"title":"a\nb\u001b[2J"}`, `a\nb`},
		"a long title":               {"application/problem+json", `{"title":"` + strings.Repeat("x", 1000) + `"}`, strings.Repeat("x", mostTitle) + "…"},
		"a problem that is too long": {"application/problem+json", `{"title":"` + secretText + `","detail":"` + strings.Repeat("x", mostProblem) + `"}`, "422 Unprocessable Entity"},
	} {
		t.Run("law_15_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(422)
				_, _ = io.WriteString(w, c.body)
			})
			_, text := decisionOf(t, e.handler(t).Handle(t.Context(), message()))
			if !strings.Contains(text, c.want) || strings.Contains(text, "\n") || strings.Contains(text, "\x1b") || len(text) > 400 {
				t.Errorf("%q does not contain %q", text, c.want)
			}
		})
	}
}
