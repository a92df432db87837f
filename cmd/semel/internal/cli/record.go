package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func recordCommand(c *common) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Have a run write what it decided last",
		Long: `Record asks the run that serves the address of the policy's key listen to write
what each of its consumers heard and decided last, and prints the files, which
are on the run's machine, in the folder of the policy's key recorder. Nothing of
a message is in them but hashes. SIGUSR1 does the same without an address.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.listening(timeout, "a run cannot be asked: add listen: 127.0.0.1:9464, or send the process SIGUSR1")
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			answer, err := askToRecord(ctx, l)
			if err != nil {
				return failed(err)
			}
			return c.printRecorded(answer)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	return c.withConfig(cmd)
}

func (c *common) printRecorded(answer metrics.Recorded) error {
	if c.json {
		if err := writeJSON(c.Out, answer); err != nil {
			return err
		}
	} else {
		for _, file := range answer.Files {
			if _, err := fmt.Fprintln(c.Out, file); err != nil {
				return failed(err)
			}
		}
	}
	if answer.Error != "" {
		return failed(errors.New(answer.Error))
	}
	return nil
}

// askToRecord asks the run that serves the address to write its recordings.
func askToRecord(ctx context.Context, l policy.Listen) (answer metrics.Recorded, err error) {
	response, err := call(ctx, l, http.MethodPost, metrics.PathRecord)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return answer, fmt.Errorf("%s wants another token, or a certificate of listen.tls.clients, which this command has not: send the process SIGUSR1", l.Address)
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return answer, fmt.Errorf("%s answers %s: it is no run of semel, or an earlier release", l.Address, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostHealth)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("%s answers %s without files: it is no run of semel", l.Address, response.Status)
	}
	return answer, nil
}
