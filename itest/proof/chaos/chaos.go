//go:build unix

package chaos

import (
	"context"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
)

// RunChaos runs the fault test with all faults and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) RunChaos(ctx context.Context, s proof.Stage) Ledger {
	setup := proof.Setup + services.NewReportedDisk("effects").Setup
	r := p.newRun(ctx, s, setup)
	defer r.close()
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres(services.Options{Standby: true})
	r.Proxy = pgproxy.Start(r.T, r.Server.DSN())
	r.writePolicy()
	if r.plain() {
		r.Exec(ctx, setup)
	}
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, partitions, -1, nil, topic))
	r.prove(ctx, func(ctx context.Context) { r.Spread(ctx, r.schedule(), r.For) })
	return r.ledger
}
