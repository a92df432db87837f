package httpkey

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Config configures a Guard. Name, Keep and either Caller or OneTenant are required.
type Config struct {
	// Name is the name of the consumer under which the store keeps the keys. Keys of different names are
	// independent. No other consumer may have the same name.
	Name string
	// Caller returns the client of a request, such as the authenticated account. Equal keys of
	// different callers are different keys. If Caller returns "", the request gets 401.
	//
	// If account names are unique only within a tenant, include the tenant. The host is not part of
	// a key, so two tenants that differ only by host would get each other's answers.
	Caller func(r *http.Request) string
	// OneTenant declares that all clients share one set of keys. With OneTenant, Caller is not needed.
	OneTenant bool
	// Keep is how long a key and its answer are kept. If a client repeats a request after Keep, the request counts as
	// new. Keep must therefore be longer than Retries.
	Keep time.Duration
	// Retries is the maximum time during which a client repeats a request, including repetitions by queues, backups and
	// operators; default one day.
	Retries time.Duration

	// Methods are the methods whose requests need a key; default POST and PATCH. If a method is neither in Methods nor
	// in Pass, its requests get 405 method-not-protected. Without this rule, a route without a method would let PUT, or
	// "post" in lower case, reach the handler unprotected.
	Methods []string
	// Pass are methods whose requests reach the handler unprotected. For example, set Pass to GET if the
	// guard wraps a whole router. The default is none.
	Pass []string
	// Optional lets requests without a key reach the handler unprotected. New rejects Optional, because a handler
	// without a key would find no transaction.
	Optional bool
	// Quoted accepts only keys in quotes (a string of RFC 9651). Without Quoted, a key of letters,
	// digits and ._~:/+=@- may also come without quotes and is the same key.
	Quoted bool
	// MaxKey is the maximum length of a key in bytes; default and maximum 255.
	MaxKey int
	// MaxBody is the maximum size of a request body in bytes; default 1 MiB. A request with a larger body
	// gets 413.
	MaxBody int64
	// MaxAnswer is the maximum size of an answer's body in bytes; default and maximum MostAnswer. If a
	// handler writes more, Write returns ErrAnswerTooLarge and the client gets 500.
	MaxAnswer int
	// Headers are the headers of an answer that are kept and repeated; default KeptHeaders. Content-Type is
	// always kept. Headers that carry secrets, such as Set-Cookie, are rejected.
	Headers []string

	// Timeout is the time after which the context of a handler ends; default 30 seconds. With NewLeased,
	// Timeout must be shorter than the lease.
	Timeout time.Duration
	// Wait is how long a repeated request waits for the answer while the first request is in progress. If
	// Wait is 0, the repeated request gets InFlightStatus and Retry-After at once.
	Wait time.Duration
	// MostOpen is the maximum number of requests that this process handles at a time. With New, each request
	// has an open transaction. A request counts until its handler returns, even after its client disconnected
	// or its Timeout passed. If a request waits longer than a second because of MostOpen, it gets 503
	// too-many-requests-open.
	//
	// With New, MostOpen must be smaller than the connection pool, because handlers that need a second
	// connection would block each other. The default is half of the pool, or 8 if the store does not
	// report its size; with NewLeased 256.
	//
	// MostOpen applies to one guard and all its routes. If several guards share a pool, the sum of their
	// MostOpen should be at most half of the pool.
	MostOpen int
	// MostOfCaller limits the requests of one caller as MostOpen limits the requests of all callers, so that a caller
	// with slow requests does not block other callers; default half of MostOpen. If a request waits longer than a
	// second because of MostOfCaller, it gets 429 too-many-requests-of-caller. With OneTenant, MostOfCaller must be 0,
	// because the only caller may use all of MostOpen.
	MostOfCaller int
	// MostBytes limits the memory for request bodies in this process: bodies that are being read, that wait,
	// or that belong to a running handler. One caller may use half of MostBytes. MostBytes must be at least
	// twice MaxBody; the default is 64 MiB, or four times MaxBody if that is more. A body without a
	// Content-Length counts as MaxBody until it has been read. Requests beyond MostBytes wait, and are
	// rejected like requests beyond MostOpen.
	MostBytes int64

	// ClientErrors is the rule for answers with 4xx; default KeepAnswer.
	ClientErrors Rule
	// ServerErrors is the rule for answers with 5xx, panics (500) and timeouts (504); default ReleaseKey
	// with New, and InDoubt with NewLeased.
	ServerErrors Rule
	// Statuses are rules for single statuses, which replace the rules above; default ReleaseKey for 408, 425
	// and 429.
	Statuses map[int]Rule

	// InFlightStatus is the status for a repeated request while the first request is in progress: 409
	// (default), or 423 if the API uses 409 for another purpose.
	InFlightStatus int
	// MismatchStatus is the status for a key that was used for another request: 422 (default), or 409 if the
	// API uses 422 for another purpose.
	MismatchStatus int
	// Problems is the prefix of the type of problem documents (RFC 9457); the code follows the prefix. If
	// Problems is empty, the type is "about:blank", and the member "code" distinguishes problems.
	Problems string
	// Observe, if not nil, is called with the outcome of each request before the answer is sent. Calls
	// are concurrent.
	Observe func(Observation)
}

// Rule says what happens to a key after an answer.
type Rule uint8

const (
	// KeepAnswer means that the answer is final: repeated requests get this answer. With New, the effect is rolled back
	// if the answer is an error.
	KeepAnswer Rule = iota + 1
	// ReleaseKey means that there was no effect. The next request with the key runs the handler again. With New, the
	// guard rolls the effect back. With NewLeased, the handler must guarantee that there was no effect.
	ReleaseKey
	// InDoubt means that it is unknown whether there was an effect. InDoubt is only for NewLeased.
	InDoubt
)

// MostAnswer is the maximum size of an answer's body in bytes, minus the size of its kept headers.
const MostAnswer = 60 << 10

// KeptHeaders returns the default of Config.Headers.
func KeptHeaders() []string {
	return []string{"Cache-Control", "Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Etag", "Last-Modified", "Link", "Location", "Vary"}
}

// Headers that are never kept, because they carry secrets, belong to one connection, or are written again for each
// answer.
var secret = []string{"Authorization", "Cookie", "Proxy-Authenticate", "Proxy-Authorization", "Set-Cookie", "Www-Authenticate",
	"Connection", "Content-Length", "Date", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade", "Idempotent-Replayed"}

const (
	mostKey     = 255
	defaultBody = 1 << 20
	defaultTime = 30 * time.Second
	day         = 24 * time.Hour

	defaultBytes = 64 << 20
	// defaultLeased is the default of Config.MostOpen with NewLeased, whose handlers use no connection of a
	// pool.
	defaultLeased = 256
)

// validate returns an error with all faults of the configuration, and sets the defaults.
func (c *Config) validate(leased bool) error {
	c.Retries = cmp.Or(c.Retries, day)
	c.Timeout = cmp.Or(c.Timeout, defaultTime)
	c.MaxKey, c.MaxBody, c.MaxAnswer = cmp.Or(c.MaxKey, mostKey), cmp.Or(c.MaxBody, defaultBody), cmp.Or(c.MaxAnswer, MostAnswer)
	c.MostBytes = cmp.Or(c.MostBytes, max(defaultBytes, 4*c.MaxBody))
	c.InFlightStatus, c.MismatchStatus = cmp.Or(c.InFlightStatus, http.StatusConflict), cmp.Or(c.MismatchStatus, http.StatusUnprocessableEntity)
	if c.Methods == nil {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Name == "", "Name is empty; set it to the name of the API")
	fault(len(c.Name) > semel.MaxID, "Name has %d bytes, and at most %d are allowed", len(c.Name), semel.MaxID)
	fault(c.Caller == nil && !c.OneTenant, "Caller is nil, so different callers would share keys; set Caller, or OneTenant")
	fault(c.Caller != nil && c.OneTenant, "OneTenant is set, and so is Caller; keep one of them")
	fault(c.Timeout < time.Millisecond, "Timeout is %v, and must be at least 1ms", c.Timeout)
	fault(c.Wait < 0, "Wait is %v; 0 refuses a copy at once", c.Wait)
	fault(c.Retries < 0, "Retries is %v; it must not be negative: it is the longest time over which a client repeats a request", c.Retries)
	fault(c.Keep <= c.Retries+c.Timeout, "Keep is %v, and must exceed Retries (%v) and Timeout (%v) together: a request that is repeated when its key is gone takes effect again", c.Keep, c.Retries, c.Timeout)
	fault(c.MaxKey < 1 || c.MaxKey > mostKey, "MaxKey is %d; it is 1 to %d", c.MaxKey, mostKey)
	fault(c.MaxBody < 1, "MaxBody is %d; it is at least 1", c.MaxBody)
	fault(c.MaxAnswer < 1 || c.MaxAnswer > MostAnswer, "MaxAnswer is %d; it is 1 to %d", c.MaxAnswer, MostAnswer)
	fault(c.MostOpen < 0, "MostOpen is %d; it is at least 1", c.MostOpen)
	fault(c.MostOfCaller < 0, "MostOfCaller is %d; it is at least 1", c.MostOfCaller)
	fault(c.MostOfCaller > 0 && c.OneTenant, "MostOfCaller is %d, and OneTenant is set: there is one caller, which MostOpen bounds", c.MostOfCaller)
	fault(c.MaxBody > 0 && c.MostBytes/2 < c.MaxBody, "MostBytes is %d; it must be at least twice MaxBody (%d), since one caller holds at most half of it", c.MostBytes, c.MaxBody)
	fault(c.InFlightStatus != http.StatusConflict && c.InFlightStatus != http.StatusLocked, "InFlightStatus is %d; it is 409 or 423", c.InFlightStatus)
	fault(c.MismatchStatus != http.StatusUnprocessableEntity && c.MismatchStatus != http.StatusConflict, "MismatchStatus is %d; it is 422 or 409", c.MismatchStatus)
	fault(len(c.Methods) == 0, "Methods is empty, so that nothing is protected; nil is POST and PATCH")
	for _, m := range slices.Concat(c.Methods, c.Pass) {
		fault(m == "" || m != strings.ToUpper(m), "Methods or Pass contains %q; write methods in upper case, otherwise no request matches", m)
	}
	for _, m := range c.Pass {
		fault(slices.Contains(c.Methods, m), "Pass and Methods both contain %s; remove it from one of them", m)
	}
	fault(c.Optional && !leased, "Optional is set: a request without a key would have no transaction; route it to a handler of its own")
	_, err := url.Parse(c.Problems)
	fault(err != nil, "Problems is no beginning of a URI: %v", err)
	return errors.Join(append(faults, c.validateHeaders(), c.validateRules(leased))...)
}

// validateHeaders returns an error for headers that must not be kept, and sets the default of Headers.
func (c *Config) validateHeaders() error {
	if c.Headers == nil {
		c.Headers = KeptHeaders()
	}
	names, err := keptNames("Headers", c.Headers)
	c.Headers = names
	return err
}

// keptNames returns the names of the headers to keep, sorted, with Content-Type.
func keptNames(field string, headers []string) ([]string, error) {
	names := []string{contentType}
	for _, name := range headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(secret, canonical) || strings.TrimSpace(name) == "" {
			return names, fmt.Errorf("%s contains %q, which is never kept: it carries a secret, or belongs to one connection", field, name)
		}
		names = append(names, canonical)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// contentType is always kept, because a client cannot read a body without it.
const contentType = "Content-Type"

// validateRules returns an error for unknown rules, and sets the default rules.
func (c *Config) validateRules(leased bool) error {
	unsure := ReleaseKey
	if leased {
		unsure = InDoubt
	}
	c.ClientErrors, c.ServerErrors = cmp.Or(c.ClientErrors, KeepAnswer), cmp.Or(c.ServerErrors, unsure)
	if c.Statuses == nil {
		c.Statuses = map[int]Rule{http.StatusRequestTimeout: ReleaseKey, http.StatusTooEarly: ReleaseKey, http.StatusTooManyRequests: ReleaseKey}
	}
	for status, rule := range c.Statuses {
		if status < 200 || status > 599 {
			return fmt.Errorf("status %d in Statuses is out of range; use 200 to 599", status)
		}
		if err := rule.validate(leased); err != nil {
			return fmt.Errorf("status %d in Statuses: %w", status, err)
		}
		if status < 300 && rule != KeepAnswer {
			return fmt.Errorf("status %d in Statuses: a success is always kept; a handler that did nothing must answer with an error", status)
		}
	}
	return errors.Join(c.ClientErrors.validate(leased), c.ServerErrors.validate(leased))
}

func (r Rule) validate(leased bool) error {
	switch {
	case r == 0 || r > InDoubt:
		return fmt.Errorf("there is no rule %d", r)
	case r == InDoubt && !leased:
		return errors.New("InDoubt needs NewLeased: New rolls back, so no outcome is unknown")
	}
	return nil
}

// rule returns the rule for a status.
func (c *Config) rule(status int) Rule {
	rule, exception := c.Statuses[status]
	switch {
	case exception:
		return rule
	case status >= 500:
		return c.ServerErrors
	case status >= 400:
		return c.ClientErrors
	}
	return KeepAnswer
}

// handlerShares divides Config.MostOpen among callers. bodyShares divides Config.MostBytes among callers.
func (c *Config) handlerShares() *shares {
	each := min(cmp.Or(c.MostOfCaller, (c.MostOpen+1)/2), c.MostOpen)
	if c.OneTenant {
		each = c.MostOpen
	}
	return &shares{most: int64(c.MostOpen), each: int64(each)}
}

func (c *Config) bodyShares() *shares {
	each := c.MostBytes / 2
	if c.OneTenant {
		each = c.MostBytes
	}
	return &shares{most: c.MostBytes, each: each}
}

// defaultOpen is the default of Config.MostOpen if the pool is unlimited or its size is unknown.
const defaultOpen = 8

// validatePool returns an error if MostOpen is not smaller than the connection pool, and sets the default of MostOpen.
func (c *Config) validatePool(st any) error {
	size := 0
	if limited, tells := st.(interface{ Limits() store.Limits }); tells {
		size = limited.Limits().Connections
	}
	if size == 0 {
		c.MostOpen = cmp.Or(c.MostOpen, defaultOpen)
		return nil
	}
	c.MostOpen = cmp.Or(c.MostOpen, max(size/2, 1))
	if c.MostOpen >= size {
		return fmt.Errorf("MostOpen is %d, and the store's pool has %d connections: handlers that need a second connection would block each other; enlarge the pool, or set MostOpen below its size", c.MostOpen, size)
	}
	return nil
}
