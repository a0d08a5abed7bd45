/** Why the embedded Postgres cannot be used, in one sentence for the operator: what happened and what to do. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';
}

/** The packages are built against glibc 2.27; on musl the kernel finds no loader for them and says "not found". */
export const needsGlibc =
  'The packaged Postgres needs glibc 2.27 or newer (so not Alpine): use a Debian-based image, or set DATABASE_URL.';

/**
 * Turns what a Postgres program wrote before it failed into an error: one sentence for the causes we know, else its
 * last lines. `what` names the step, for example "Postgres did not start".
 */
export function explainFailure(what: string, stderr: string): EmbeddedPostgresError {
  const nameless = /could not look up effective user ID (\d+)/.exec(stderr);
  if (nameless) {
    return new EmbeddedPostgresError(
      `Postgres cannot create a database as user ${nameless[1]}, who has no entry in /etc/passwd: ` +
        'run as a named user, or set DATABASE_URL.',
    );
  }
  if (/GLIBC_\d|: not found$/m.test(stderr)) return new EmbeddedPostgresError(needsGlibc);
  const lastLines = stderr.trim().split('\n').slice(-8).join(' | ');
  return new EmbeddedPostgresError(`${what}; repair that or set DATABASE_URL. It said: ${lastLines || 'nothing'}`);
}
