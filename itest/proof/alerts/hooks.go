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

// The name of the consumer of webhooks, and of its source.
const hooking = "hooking"

// A secret that only this fault test uses.
const hookSecret = "whsec_that_only_this_proof_knows"

// withHooks adds the consumer of webhooks to a policy, with the address at which the consumer receives webhooks.
func (r *run) withHooks(policy string) (text string) {
	r.hooks = proof.Must(proof.FreeAddress())
	source := fmt.Sprintf("  %s:\n    webhook: {listen: %q, path: /hooks, scheme: stripe, secret: \"${HOOK_SECRET}\"}\n", hooking, r.hooks)
	r.first.Env = append(r.first.Env, "HOOK_SECRET="+hookSecret)
	consumer := strings.Replace(plain(hooking, "strategy: inbox", "ack: after_receipt", "lanes: none", "alerts: {pending_age: 15m}"), "{id: id, source: source}", `{id: "body:/id"}`, 1)
	consumer = strings.Replace(consumer, "{id: id, amount:", `{id: "body:/id", amount:`, 1)
	return strings.Replace(policy, "consumers:\n", source+"consumers:\n", 1) + consumer
}

// forgery returns a fault in which webhooks with a wrong signature arrive.
func (r *run) forgery() fault {
	n := 0
	return fault{says: "webhooks come that are signed with another secret", alerts: []string{"SemelWebhooksRefused"}, on: func(ctx context.Context, _ time.Duration) {
		n++
		body := fmt.Sprintf(`{"id":"forged_%d","amount":1}`, n)
		q := proof.Must(http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.hooks+"/hooks", strings.NewReader(body)))
		q.Header.Set(signers.StripeHeader, signers.Stripe("whsec_of_somebody_who_guesses", time.Now(), []byte(body)))
		answer := proof.Must(http.DefaultClient.Do(q))
		proof.Check(answer.Body.Close())
		if answer.StatusCode != http.StatusUnauthorized {
			proof.Check(fmt.Errorf("a forged webhook was answered with %d", answer.StatusCode))
		}
	}}
}
