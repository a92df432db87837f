package proof

import (
	"flag"
	"fmt"

	"github.com/semel-go/semel/itest/worlds/webhooks"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Payloads declares the flag that names a file of real payloads. If the flag is given, the payloads are loaded into the
// slice hooks. Without the flag, the slice hooks contains generated payloads.
func Payloads(flags *flag.FlagSet, hooks *[]webhooks.Webhook) {
	*hooks = webhooks.MadeUp(300, 4000)
	flags.Func("webhooks", "`path` of index.json, as scripts/fetch-webhooks prints it; made-up payloads without", func(path string) (err error) {
		*hooks, err = webhooks.Load(path)
		return err
	})
}

// Drivers declares the flag that chooses a driver. If this flag is not given, the slice drivers contains all drivers.
func Drivers(flags *flag.FlagSet, drivers *[]workload.Driver) {
	*drivers = workload.Drivers()
	flags.Func("driver", "only this `driver`: database/sql or pgx", func(name string) error {
		for _, d := range workload.Drivers() {
			if d.Name == name {
				*drivers = []workload.Driver{d}
				return nil
			}
		}
		return fmt.Errorf("there is no driver %s", name)
	})
}
