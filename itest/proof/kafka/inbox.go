//go:build unix

package kafka

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// The number of messages that fail permanently until the fault test repairs the cause.
const poisoned = 10

// SQL that makes one handler in a hundred fail, on average twice. Some handlers fail permanently until the cause is
// repaired. The failures are counted with a sequence, because a rollback does not reset a sequence.
const failing = `create sequence luck;
create table mended (since timestamptz not null);
create function strike() returns trigger language plpgsql as $$
begin
  if new.delivery in (%s) and not exists (select 1 from mended) then
    raise exception 'poison';
  end if;
  if hashtext(new.delivery) %% 100 = 0 and nextval('luck') %% 3 <> 0 then
    raise exception using errcode = '55000', message = 'bad luck';
  end if;
  return new;
end $$;
create trigger strike before insert on effects for each row execute function strike();
`

func (r *run) setup() string {
	if !r.Inbox && !r.Order {
		return setup
	}
	var ids []string
	for _, event := range r.poison() {
		ids = append(ids, "'"+webhooks.ID(event)+"'")
	}
	counted := ""
	if r.Order { // the column n records the order of the effects
		counted = "alter table effects add n bigint generated always as identity;\n"
	}
	return setup + counted + fmt.Sprintf(failing, strings.Join(ids, ", "))
}

// workOff waits until the only waiting messages in the inbox are parked messages, and messages behind a
// parked message or a gap. workOff then retries the parked messages with a command, and waits again.
func (r *run) workOff(ctx context.Context) {
	r.waitDrained(ctx, untilMended)
	r.Exec(ctx, "insert into mended values (now())")
	// After ten minutes, a message that waits behind a gap is also parked, with the reason gap.
	said := proof.Must(r.Members[0].Semel(ctx, "messages", "retry", "--all", "--reason", string(semel.ReasonPermanent), "--yes", "--wait", "--because", "mended", "--as", "proof"))
	_, results, _ := strings.Cut(said, "happened: ")
	proof.During("semel messages retry says "+said, func() { proof.Must(fmt.Sscanf(results, "%d applied", &r.ledger.Retried)) })
	r.Say("%d parked messages are retried", r.ledger.Retried)
	r.waitDrained(ctx, untilFilled)
	r.skipGaps(ctx)
}

// countRefusals returns the number of writes that the server rejected because their token was old.
func (r *run) countRefusals() int { return r.Server.Logged(" claims stand") }

// inboxLedger counts rejected tokens and failures in the server's log.
func (r *run) inboxLedger() {
	if r.Inbox || r.Order {
		r.ledger.Refused = r.countRefusals()
		r.ledger.Failed = r.Server.Logged("bad luck")
	}
}
