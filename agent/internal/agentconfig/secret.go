package agentconfig

import (
	"errors"
	"fmt"
	"os"

	"github.com/stallspan/stallspan/internal/alert/action"
	"github.com/stallspan/stallspan/internal/trust"
)

// readSecret sets the secret of a webhook from the file or the environment variable that the config names.
func readSecret(w *action.Webhook) (err error) {
	switch {
	case w.SecretFile != "" && w.SecretEnv != "":
		return errors.New("the secret is given twice: keep one of secret_file and secret_env")
	case w.SecretFile != "":
		w.Secret, err = trust.Secret("secret_file", w.SecretFile)
	case w.SecretEnv != "":
		w.Secret = []byte(os.Getenv(w.SecretEnv))
		if len(w.Secret) == 0 {
			return fmt.Errorf("the environment variable %.60q of secret_env is not set", w.SecretEnv)
		}
	}
	return err
}
