// Package config is a typed registry of dotted keys, such as s3.retry.mode, and the loader that fills it from a YAML
// file, the environment, -D pairs and maps.
//
// An option is declared once, as a variable of the package that uses it, with its type, default, text, other spellings
// and checks:
//
//	var KeyMaxNumRetries = config.Int("s3.retry.max-num-retries", 3, "Retries after the first attempt.",
//		config.Range[int64](0, 1000))
//
// A program collects the declarations of its packages in a [Registry], calls [Load] once, and reads with [Get]:
//
//	r, err := config.NewRegistry(retrymode.Keys(), s3fs.Keys())
//	c, err := config.Load(r, config.YAML("job.yaml", f), config.Env(os.Environ()), config.Pairs("-D", pairs))
//	n := config.Get(c, retrymode.KeyMaxNumRetries)
//
// # Guarantees
//
//   - Later sources win, key by key. Every text of every source is parsed and checked, overridden ones too, and all
//     problems are returned together, each with the place it comes from, in the same order on every run.
//   - A key that no package declared is an error that names the nearest declared one. Nothing is ignored.
//   - After Load a [Config] never changes, every value in it has been parsed and checked, and [Get] cannot fail.
//   - A [Secret] prints as asterisks through fmt, slog, JSON and YAML, and no error of this package holds its text.
//   - Keys are opaque: "s3.retry" and "s3.retry.mode" may both exist. In YAML the nested and the flat spelling of a key
//     are the same key, and a scalar keeps the text that the file has (010 stays 010).
//
// Sizes and durations follow Flink's grammar, see [ParseSize] and [ParseDuration]: a bare number is bytes in one and
// milliseconds in the other.
//
// The package has no state, starts no goroutine and reads neither files nor the environment by itself. All types are
// safe for concurrent use, except that a [Source] is loaded once, by one goroutine.
package config
