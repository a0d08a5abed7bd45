/** How a program comes to its environment. */
export interface ProgramEnv {
  /** Goes between the walls and the program. */
  wrapper: string[];
  /** For the outermost wrapper. */
  env: Record<string, string>;
}

/**
 * Carries a program's environment through its walls under names that mean nothing. What builds them runs as this service,
 * and a tenant's `PATH`, `LD_PRELOAD` or function of a shell would have it run a tenant's code. A shell behind all walls
 * gives the variables their names; one whose name no shell takes is left out, and the shell says so. No value stands in an
 * argument, which every process of the machine can read.
 */
export function programEnv(env: Record<string, string>): ProgramEnv {
  const pairs = Object.entries(env);
  if (pairs.length === 0) return { wrapper: [], env: {} };
  const carriers = pairs.map((_, index) => `SLIPWAY_${index}`);
  // `command`: a variable that cannot be set, such as a shell's own, ends the shell otherwise.
  const given = carriers.map((name) => `command export -- "$${name}"; unset ${name}`);
  return {
    wrapper: ['sh', '-c', ['unset OLDPWD', ...given, 'exec "$@"'].join('\n'), 'sh'],
    env: Object.fromEntries(pairs.map(([name, value], index) => [carriers[index] ?? '', `${name}=${value}`])),
  };
}
