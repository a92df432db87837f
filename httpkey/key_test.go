package httpkey_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel/httpkey"
)

// echo is a handler that responds with the key of its attempt.
func echo(w http.ResponseWriter, r *http.Request) {
	a, _ := httpkey.AttemptFrom(r.Context())
	w.Header().Set("X-Key", a.Key)
	w.WriteHeader(http.StatusCreated)
}

func TestF1TheHeaderIsAStringOfRFC9651(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		bare   bool
		key    string // empty if the request is rejected
		says   string
	}{
		"F1_a_string":                            {[]string{`"8e03978e-40d5"`}, false, "8e03978e-40d5", ""},
		"F1_one_byte":                            {[]string{`"k"`}, false, "k", ""},
		"F1_with_space_around_and_inside":        {[]string{"  \"a b\"\t"}, false, "a b", ""},
		"F1_with_escapes":                        {[]string{`"a\"b\\c"`}, false, `a"b\c`, ""},
		"F1_bare_where_that_is_allowed":          {[]string{"8e03978e-40d5"}, true, "8e03978e-40d5", ""},
		"F1_quoted_where_bare_is_allowed":        {[]string{`"8e03978e-40d5"`}, true, "8e03978e-40d5", ""},
		"F1_255_bytes":                           {[]string{`"` + strings.Repeat("k", 255) + `"`}, false, strings.Repeat("k", 255), ""},
		"F1_256_bytes_are_refused":               {[]string{`"` + strings.Repeat("k", 256) + `"`}, false, "", "at most 255"},
		"F1_10000_bytes_are_refused":             {[]string{`"` + strings.Repeat("k", 10_000) + `"`}, false, "", "at most 255"},
		"F1_10000_bare_bytes_are_refused":        {[]string{strings.Repeat("k", 10_000)}, true, "", "at most 255"},
		"F1_without_quotes_it_is_refused":        {[]string{"8e03978e-40d5"}, false, "", "double quotes"},
		"F1_without_a_closing_quote":             {[]string{`"abc`}, false, "", "no closing quote"},
		"F1_of_a_single_quote":                   {[]string{`"`}, false, "", "no closing quote"},
		"F1_without_an_opening_quote":            {[]string{`abc"`}, true, "", "put the key in double quotes"},
		"F1_empty":                               {[]string{""}, false, "", "double quotes"},
		"F1_empty_where_bare_is_allowed":         {[]string{""}, true, "", "is empty"},
		"F1_an_empty_string":                     {[]string{`""`}, false, "", "is empty"},
		"F1_two_headers":                         {[]string{`"a"`, `"b"`}, false, "", "send one"},
		"F1_two_headers_that_are_equal":          {[]string{`"a"`, `"a"`}, false, "", "send one"},
		"F1_a_list":                              {[]string{`"a", "b"`}, false, "", "continues after"},
		"F1_a_parameter":                         {[]string{`"a";v=1`}, false, "", "continues after"},
		"F1_a_token_with_a_backslash":            {[]string{`"a\b"`}, false, "", "backslash"},
		"F1_a_backslash_at_its_end":              {[]string{`"a\`}, false, "", "backslash"},
		"F1_binary":                              {[]string{"\"a\x00b\""}, false, "", "printable"},
		"F1_not_of_ascii":                        {[]string{`"schlüssel"`}, false, "", "printable"},
		"F1_bare_and_not_of_ascii":               {[]string{"schlüssel"}, true, "", "without quotes may not have"},
		"F1_bare_with_a_space":                   {[]string{"a b"}, true, "", "without quotes may not have"},
		"F1_a_byte_sequence_of_RFC9651_is_none":  {[]string{":YWJj:"}, false, "", "double quotes"},
		"F1_none_is_refused_where_it_is_needed":  {nil, false, "", "send the header Idempotency-Key"},
		"F1_none_is_refused_where_bare_is_meant": {nil, true, "", "send the header Idempotency-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, echo, func(to *httpkey.Config) { to.Quoted = !c.bare })
			w := s.post("", "tea", func(r *http.Request) { r.Header[httpkey.Header] = c.header })
			if c.key != "" {
				if w.Code != http.StatusCreated || w.Header().Get("X-Key") != c.key {
					t.Errorf("%d, the key is %q: %s", w.Code, w.Header().Get("X-Key"), w.Body)
				}
				return
			}
			wantProblem(t, w, http.StatusBadRequest, "")
			if !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("it says %s", w.Body)
			}
			if strings.Contains(w.Body.String(), "schl") || len(w.Body.String()) > 500 {
				t.Errorf("the response contains the rejected header: %s", w.Body)
			}
		})
	}
}

func TestF1WithAndWithoutQuotesIsTheSameKey(t *testing.T) {
	s := newFixture(t, effect, nil)
	s.post(`"k1"`, "tea")
	if w := s.post("k1", "tea"); w.Header().Get(httpkey.ReplayedHeader) != "true" {
		t.Errorf("it is another: %d", w.Code)
	}
}

// wantProblem checks that a response is a problem document with the given status and code. If the request may be
// repeated, the response must have a Retry-After.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	comesAgain := code == "request-in-progress" || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); (err == nil && after > 0) != comesAgain {
		t.Errorf("the Retry-After of %s is %q", code, w.Header().Get("Retry-After"))
	}
	if w.Code != status || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), code) {
		t.Errorf("the response is %d %v %s; want %d %s", w.Code, w.Header(), w.Body, status, code)
	}
}
