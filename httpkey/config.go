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

// Config says which requests have a key, and what becomes of their answers. Name, Keep and
// one of Caller and OneTenant have to be set.
type Config struct {
	// Name is whose keys these are; those of two guards never meet. It is the name of a
	// consumer in the store, and must be no other consumer's.
	Name string
	// Caller names who asks, such as the account that authentication has found. A key of one
	// caller is never another's. Empty: the request is refused with 401.
	//
	// Where accounts are known within a tenant only, name the tenant, too: a host is no part of
	// a key, nor of what a request is recognised by, so that of two tenants by host one would
	// be given what the other was answered.
	Caller func(r *http.Request) string
	// OneTenant says that all who ask are one, so that no Caller is needed.
	OneTenant bool
	// Keep is how long a key and its answer are kept. A request that is repeated later is a
	// new one, so it must exceed Retries.
	Keep time.Duration
	// Retries is for how long after the first time the slowest client repeats a request: of
	// its queue, its backup, its operator. 0 is a day.
	Retries time.Duration

	// Methods are those whose requests have a key; nil: POST and PATCH. Requests of a method that
	// is neither here nor in Pass are refused with 405 method-not-protected, so that a route
	// without a method does not let PUT, or post in lower case, reach the handler unprotected.
	Methods []string
	// Pass are methods whose requests reach the handler without a key and unprotected, such as
	// GET where the guard is around a whole router; nil: none.
	Pass []string
	// Optional lets requests without a key pass by, unprotected. Of New it is refused: their
	// handler would find no transaction.
	Optional bool
	// Quoted refuses a key without quotes, so that only a string of RFC 9651 is a key. Without it
	// a key of letters, digits and any of ._~:/+=@- may come without them, and is the same key.
	Quoted bool
	// MaxKey is the most bytes of a key; 0 is 255, which is the most.
	MaxKey int
	// MaxBody is the most bytes of a request; 0 is 1 MiB. More is refused with 413.
	MaxBody int64
	// MaxAnswer is the most bytes of an answer's body; 0 is MostAnswer, which is the most. A
	// handler that writes more fails with ErrAnswerTooLarge, and is answered with 500.
	MaxAnswer int
	// Headers are those of an answer that are kept and repeated; nil is KeptHeaders, and
	// Content-Type is always one. What carries a secret, such as Set-Cookie, is refused.
	Headers []string

	// Timeout ends the context of a handler; 0 is 30 seconds. Of NewLeased it must be shorter
	// than the lease.
	Timeout time.Duration
	// Wait is how long a copy of a request that is under way waits for its answer; 0: it is
	// refused at once with InFlightStatus and Retry-After.
	Wait time.Duration
	// MostOpen is how many requests of this process have a place at a time: their handlers run,
	// and with New each has an open transaction. A handler keeps its place until it returns, also
	// when its client has gone or its Timeout is over. A request that finds no place within a
	// second is answered with 503 too-many-requests-open.
	//
	// With New, MostOpen must be below the size of the pool: handlers that take a second connection
	// from the same pool would wait for each other. 0 is half of the pool, or 8 where the store does
	// not tell its size. With NewLeased 0 is 256.
	//
	// It bounds one guard, however many routes that protects, and guards know nothing of each
	// other: where several share a pool, set it of each, so that they add up to half of it.
	MostOpen int
	// MostOfCaller is how many of these places one caller has at a time, so that one caller with
	// slow requests does not shut out the others; 0 is half of MostOpen. A request beyond it
	// waits for a second, and is answered with 429 too-many-requests-of-caller. With OneTenant
	// there is one caller, which may have all places.
	MostOfCaller int
	// MostBytes is how many bytes of request bodies this process holds at a time: bodies that
	// are being read, wait for a place or belong to a running handler. One caller holds at most
	// half of it. It must be at least twice MaxBody; 0 is 64 MiB, or four times MaxBody if that
	// is more. A body without a Content-Length counts as MaxBody until it is read. Requests
	// beyond it wait, and are refused, as those beyond MostOpen are.
	MostBytes int64

	// ClientErrors is what becomes of a key whose handler answered with 4xx; 0 is KeepAnswer.
	ClientErrors Rule
	// ServerErrors is what becomes of one that answered with 5xx, panicked (500) or came to
	// no end within Timeout (504); 0 is ReleaseKey with New, and InDoubt with NewLeased.
	ServerErrors Rule
	// Statuses are exceptions; nil: 408, 425 and 429 are ReleaseKey.
	Statuses map[int]Rule

	// InFlightStatus is the answer to a copy of a request that is under way: 409, or 423 for
	// an API in which 409 says something else. 0 is 409.
	InFlightStatus int
	// MismatchStatus is the answer to a key that stands for another request: 422, or 409 for
	// an API in which 422 says something else. 0 is 422.
	MismatchStatus int
	// Problems begins the type of each problem (RFC 9457), which its code ends; empty:
	// "about:blank", and the member "code" tells them apart.
	Problems string
	// Observe, if not nil, is told of each request what became of it, before it is answered.
	// Several goroutines may call it at once.
	Observe func(Observation)
}

// Rule is what becomes of a key after an answer.
type Rule uint8

// The rules.
const (
	// KeepAnswer: the answer is final, and repeated. Of New an error's effect is rolled back.
	KeepAnswer Rule = iota + 1
	// ReleaseKey: there was no effect, and the next request runs the handler anew. Of New it
	// is rolled back; of NewLeased the handler promises it.
	ReleaseKey
	// InDoubt, of NewLeased alone: nobody knows whether there was an effect.
	InDoubt
)

// MostAnswer is the most bytes of an answer's body; what its kept headers take comes off it.
const MostAnswer = 60 << 10

// KeptHeaders returns the headers of an answer that are kept where Config.Headers is nil.
func KeptHeaders() []string {
	return []string{"Cache-Control", "Content-Encoding", "Content-Language", "Content-Location", "Content-Type", "Etag", "Last-Modified", "Link", "Location", "Vary"}
}

// secret are headers of which nothing is kept. The rest belongs to one connection, or says
// what is said anew.
var secret = []string{"Authorization", "Cookie", "Proxy-Authenticate", "Proxy-Authorization", "Set-Cookie", "Www-Authenticate",
	"Connection", "Content-Length", "Date", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade", "Idempotent-Replayed"}

const (
	mostKey     = 255
	defaultBody = 1 << 20
	defaultTime = 30 * time.Second
	day         = 24 * time.Hour

	defaultBytes = 64 << 20
	// defaultLeased is Config.MostOpen of NewLeased, whose handlers hold no connection of a pool.
	defaultLeased = 256
)

// fits reports all that is wrong with a configuration, and sets what was left open.
func (c *Config) fits(leased bool) error {
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
	fault(c.Name == "", "Name is empty; say whose keys these are")
	fault(len(c.Name) > semel.MaxID, "Name has %d bytes, and at most %d are allowed", len(c.Name), semel.MaxID)
	fault(c.Caller == nil && !c.OneTenant, "Caller is nil, so that keys of different callers would meet; name the caller, or say OneTenant")
	fault(c.Caller != nil && c.OneTenant, "OneTenant is set, and so is Caller; keep one of them")
	fault(c.Timeout < time.Millisecond, "Timeout is %v, and must be at least 1ms", c.Timeout)
	fault(c.Wait < 0, "Wait is %v; 0 refuses a copy at once", c.Wait)
	fault(c.Retries < 0, "Retries is %v; it is for how long the slowest client repeats a request", c.Retries)
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
		fault(m == "" || m != strings.ToUpper(m), "in Methods or Pass stands %q, and methods are in upper case: no request would be of it", m)
	}
	for _, m := range c.Pass {
		fault(slices.Contains(c.Methods, m), "in Pass stands %s, which is in Methods, too: either its requests have a key, or they pass without one", m)
	}
	fault(c.Optional && !leased, "Optional is set: a request without a key would have no transaction; route it to a handler of its own")
	_, err := url.Parse(c.Problems)
	fault(err != nil, "Problems is no beginning of a URI: %v", err)
	return errors.Join(append(faults, c.headersFit(), c.rulesFit(leased))...)
}

// headersFit reports headers of which nothing may be kept, and sets the default.
func (c *Config) headersFit() error {
	if c.Headers == nil {
		c.Headers = KeptHeaders()
	}
	names, err := keptNames("Headers", c.Headers)
	c.Headers = names
	return err
}

// keptNames are the names of headers that are kept, in order and with Content-Type.
func keptNames(field string, headers []string) ([]string, error) {
	names := []string{contentType}
	for _, name := range headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(secret, canonical) || strings.TrimSpace(name) == "" {
			return names, fmt.Errorf("in %s stands %q, which is never kept: it carries a secret, or belongs to one connection alone", field, name)
		}
		names = append(names, canonical)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// contentType is a header without which no body can be read.
const contentType = "Content-Type"

// rulesFit reports rules that there are not, and sets the defaults.
func (c *Config) rulesFit(leased bool) error {
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
			return fmt.Errorf("in Statuses stands %d, which is the status of no answer", status)
		}
		if err := rule.fits(leased); err != nil {
			return fmt.Errorf("in Statuses, of %d: %w", status, err)
		}
		if status < 300 && rule != KeepAnswer {
			return fmt.Errorf("in Statuses, of %d: what was done is kept; a handler that did nothing answers with an error", status)
		}
	}
	return errors.Join(c.ClientErrors.fits(leased), c.ServerErrors.fits(leased))
}

func (r Rule) fits(leased bool) error {
	switch {
	case r == 0 || r > InDoubt:
		return fmt.Errorf("there is no rule %d", r)
	case r == InDoubt && !leased:
		return errors.New("InDoubt is of NewLeased alone: what is rolled back is in no doubt")
	}
	return nil
}

// rule is what becomes of a key after an answer with this status.
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

// places returns the shares of Config.MostOpen, and bodies those of MostBytes.
func (c *Config) places() *shares {
	each := min(cmp.Or(c.MostOfCaller, (c.MostOpen+1)/2), c.MostOpen)
	if c.OneTenant {
		each = c.MostOpen
	}
	return &shares{most: int64(c.MostOpen), each: int64(each)}
}

func (c *Config) bodies() *shares {
	each := c.MostBytes / 2
	if c.OneTenant {
		each = c.MostBytes
	}
	return &shares{most: c.MostBytes, each: each}
}

// defaultOpen is Config.MostOpen of a store whose pool has no bound, or that does not tell.
const defaultOpen = 8

// poolFits reports that as many keys could be open as the store's pool has connections, and
// sets the default.
func (c *Config) poolFits(st any) error {
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
		return fmt.Errorf("MostOpen is %d, and the store's pool has %d connections: handlers that take a second one would wait for each other for ever; make the pool larger, or set MostOpen below it", c.MostOpen, size)
	}
	return nil
}
