package httpkey_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/memstore"
)

var update = flag.Bool("update", false, "write the printed contracts to the files")

func TestF1TheContractWithClients(t *testing.T) {
	everything := func(c *httpkey.Config, _ *httpkey.LeaseConfig) {
		c.Quoted, c.Optional, c.Wait, c.Caller, c.OneTenant = true, true, 10*time.Second, nil, true
		c.ClientErrors, c.ServerErrors = httpkey.ReleaseKey, httpkey.KeepAnswer
		c.Statuses = map[int]httpkey.Rule{422: httpkey.KeepAnswer}
		c.InFlightStatus, c.MismatchStatus = 423, 409
	}
	for name, g := range map[string]*httpkey.Guard{
		"new":    newFixture(t, effect, nil).Guard,
		"leased": newLeasedFixture(t, memstore.NewKeys(), effect, everything).Guard,
	} {
		t.Run("F1_of_"+name, func(t *testing.T) {
			c := g.Contract()
			for file, text := range map[string]string{"testdata/" + name + ".md": c.Markdown(), "testdata/" + name + ".json": string(c.OpenAPI())} {
				if *update {
					if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if text != string(want) {
					t.Errorf("%s differs from the printed contract; run with -update:\n%s", file, text)
				}
			}
		})
	}
}
