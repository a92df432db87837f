package httpkey

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel/internal/legible"
)

// Contract describes the guarantees and duties of the clients of a Guard.
type Contract struct {
	config Config
	lease  *LeaseConfig // nil with New
}

// Contract returns the contract with the clients of this guard, for the documentation of the API.
func (g *Guard) Contract() Contract {
	c := Contract{config: g.config}
	if l, is := g.strategy.(*leased); is {
		c.lease = &l.config
	}
	return c
}

// row is one of the answers that a guard gives, with its status and code.
type row struct {
	status             int
	code, when, client string
}

const (
	sameKey = "repeat it with the same key after `Retry-After`"
	correct = "correct the request"
)

// The method rows returns the answers that the guard gives, by status.
func (c *Contract) rows() []row {
	all := []row{
		{400, codeInvalid, "the header cannot be read", correct},
		{400, codeBody, "the body ended early", "repeat it with the same key"},
		{405, codeMethod, "the method is none of " + strings.Join(slices.Concat(c.config.Methods, c.config.Pass), ", "), correct},
		{413, codeTooLarge, fmt.Sprintf("the body has more than %d bytes", c.config.MaxBody), correct},
		{c.config.MismatchStatus, codeMismatch, "the key was used for another request", "send a new key with a new request"},
		{c.config.InFlightStatus, codeInFlight, "a request with this key is in progress", sameKey},
		{410, codeGone, "the request took effect, and its answer was removed", "query the state that it changed"},
		{500, codePanic, "the handler failed", "repeat it with the same key"},
		{500, codeAnswer, "the answer is too large to be kept", "contact the operators"},
		{503, codeUnavailable, "keys cannot be looked up", sameKey},
		{503, codeNotRecorded, "it is unknown whether the answer was kept", sameKey},
		{503, codeBusy, "too many requests are open", sameKey},
		{503, codeNewer, "a newer server has the answer", sameKey},
		{504, codeTimeout, fmt.Sprintf("the handler took longer than %s", legible.Span(c.config.Timeout)), sameKey},
	}
	if !c.config.Optional {
		all = append(all, row{400, codeMissing, "the header is missing", "send one"})
	}
	if c.config.Caller != nil {
		all = append(all, row{401, codeCaller, "the caller is not known", "authenticate"},
			row{429, codeBusyCaller, "too many requests of this caller are open", sameKey})
	}
	if c.lease != nil {
		all = append(all, row{409, codeUnsure, "it is unknown whether the request took effect", "query the state that it changes; do not repeat it"})
	} else {
		all = append(all, row{409, codeUnsure, "an operator parked the request", "contact the operators"},
			row{500, codeCommit, "it was rolled back", "repeat it with the same key"}, row{503, codeCommit, "it was rolled back", sameKey})
	}
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.status, b.status), cmp.Compare(a.code, b.code))
	})
	return all
}

// Markdown returns the contract as Markdown.
func (c Contract) Markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("## Idempotent requests\n")
	need := "need"
	if c.config.Optional {
		need = "may have"
	}
	line("Requests with %s %s the header `%s`, %s.", strings.Join(c.config.Methods, " or "), need, Header, c.form())
	line("If a request is repeated with the same key, its effect happens once, and every copy gets the answer of the first, with `%s: true`.\n", ReplayedHeader)
	for _, rule := range c.promises() {
		line("* %s", rule)
	}
	line("\n| status | `code` | when | what a client does |")
	line("|---|---|---|---|")
	for _, r := range c.rows() {
		line("| %d | `%s` | %s | %s |", r.status, r.code, r.when, r.client)
	}
	line("\nThese answers are problem documents (RFC 9457, `application/problem+json`). Other answers come from the handler.")
	return b.String()
}

func (c *Contract) form() string {
	bare := ""
	if !c.config.Quoted {
		bare = ", or the same without quotes if it has letters, digits and `._~:/+=@-` alone"
	}
	return fmt.Sprintf("a string in double quotes (RFC 9651) of 1 to %d printable ASCII characters%s", c.config.MaxKey, bare)
}

func (c *Contract) promises() []string {
	scope := "Equal keys of different callers are different keys."
	if c.config.Caller == nil {
		scope = "All callers share their keys."
	}
	list := []string{
		scope,
		fmt.Sprintf("A key is kept for %s. Repeat a request for at most %s after its first time; later it may take effect again.", legible.Span(c.config.Keep), legible.Span(c.config.Retries)),
		"A key belongs to one method, path, query, body, Content-Type and Content-Encoding, byte by byte. Repeat exactly the bytes of the first request, also of JSON.",
		"An answer of 2xx or 3xx is final, and so is " + c.finality(),
		"After any other answer, or none, repeat the request with the same key, and wait longer each time.",
		fmt.Sprintf("These headers of an answer are repeated: %s.", strings.Join(c.config.Headers, ", ")),
	}
	if c.config.Wait > 0 {
		list = append(list, fmt.Sprintf("A request whose key is in progress waits for its answer, up to %s.", legible.Span(c.config.Wait)))
	}
	return list
}

// finality returns the end of the sentence that lists the final errors (see promises).
func (c *Contract) finality() string {
	var final []string
	if c.config.ClientErrors == KeepAnswer {
		final = append(final, "one of 4xx")
	}
	if c.config.ServerErrors == KeepAnswer {
		final = append(final, "one of 5xx")
	}
	text := "no error"
	if len(final) > 0 {
		text = strings.Join(final, " or ")
	}
	if also := c.exceptions(true); also != "" {
		text += ", and " + also
	}
	if but := c.exceptions(false); but != "" {
		text += ", but not " + but
	}
	return text + "."
}

// The method exceptions returns the statuses whose rule differs from the rule of their class. The parameter final
// selects the statuses that are final, or the statuses that are not final.
func (c *Contract) exceptions(final bool) string {
	usual := Config{ClientErrors: c.config.ClientErrors, ServerErrors: c.config.ServerErrors}
	var list []string
	for status, rule := range c.config.Statuses {
		if (rule == KeepAnswer) == final && (usual.rule(status) == KeepAnswer) != final {
			list = append(list, strconv.Itoa(status))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// OpenAPI returns the contract as a fragment of OpenAPI 3.1 in JSON. The fragment contains components to
// which operations can refer: a parameter, a header, and a response for each status.
func (c Contract) OpenAPI() []byte {
	type object = map[string]any
	responses := object{}
	for _, r := range c.rows() {
		name := "Idempotency" + strconv.Itoa(r.status)
		text := fmt.Sprintf("`%s`: %s; %s.", r.code, r.when, r.client)
		if before, is := responses[name].(object); is {
			before["description"] = before["description"].(string) + "\n" + text
			continue
		}
		responses[name] = object{"description": text, "content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/IdempotencyProblem"}}}}
	}
	text := object{"type": "string"}
	all := object{"components": object{
		"parameters": object{"IdempotencyKey": object{
			"name": Header, "in": "header", "required": !c.config.Optional, "schema": object{"type": "string", "minLength": 1, "maxLength": 2*c.config.MaxKey + 2},
			"description": "New for each request that is new, and the same when a request is repeated: " + c.form() + ".", "example": `"8e03978e-40d5-43dd-bc93-6894a57f9324"`,
		}},
		"headers": object{"IdempotentReplayed": object{"description": ReplayedHeader + ": the answer is that of an earlier request with this key.", "schema": object{"type": "string", "enum": []string{"true"}}}},
		"schemas": object{"IdempotencyProblem": object{"type": "object", "required": []string{"type", "title", "status", "code"}, "properties": object{
			"type": text, "title": text, "detail": text, "code": text, "status": object{"type": "integer"},
		}}},
		"responses": responses,
	}}
	b, _ := json.MarshalIndent(all, "", "  ") // maps, texts and numbers
	return append(b, '\n')
}
