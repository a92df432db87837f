//go:build unix

package alerts

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/http/signers"
	"github.com/semel-go/semel/itest/proof"
)

// hooking is the name of the consumer of webhooks and of its source.
const hooking = "hooking"

// hookSecret is a secret for this proof only.
const hookSecret = "whsec_that_only_this_proof_knows"

// withHooks adds to a policy the consumer of webhooks and the address where it receives them.
func (r *run) withHooks(policy string) (text string, err error) {
	if r.hooks, err = proof.FreeAddress(); err != nil {
		return "", err
	}
	source := fmt.Sprintf("  %s:\n    webhook: {listen: %q, path: /hooks, scheme: stripe, secret: \"${HOOK_SECRET}\"}\n", hooking, r.hooks)
	r.first.Env = append(r.first.Env, "HOOK_SECRET="+hookSecret)
	consumer := strings.Replace(plain(hooking, "strategy: inbox", "ack: after_receipt", "lanes: none", "alerts: {pending_age: 15m}"), "{id: id, source: source}", `{id: "body:/id"}`, 1)
	consumer = strings.Replace(consumer, "{id: id, amount:", `{id: "body:/id", amount:`, 1)
	return strings.Replace(policy, "consumers:\n", source+"consumers:\n", 1) + consumer, nil
}

// forgery sends webhooks with a wrong signature.
func (r *run) forgery() fault {
	n := 0
	return fault{says: "webhooks come that are signed with another secret", alerts: []string{"SemelWebhooksRefused"}, on: func(ctx context.Context, _ time.Duration) error {
		n++
		status, err := r.hook(ctx, fmt.Sprintf(`{"id":"forged_%d","amount":1}`, n), "whsec_of_somebody_who_guesses")
		if err == nil && status != http.StatusUnauthorized {
			err = fmt.Errorf("a forged webhook was answered with %d", status)
		}
		return err
	}}
}

// hook sends a webhook and returns the status of the response.
func (r *run) hook(ctx context.Context, body, secret string) (int, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.hooks+"/hooks", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header.Set(signers.StripeHeader, signers.Stripe(secret, time.Now(), []byte(body)))
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
