const GB = 1024 ** 3;

/**
 * Limits of an account with their defaults, far above what a team uses: one key may serve all users of an app, and an app
 * may have a namespace for each customer. `logBytesPerDay` follows from the log's size, `livePrograms` from
 * `RUNTIME_LIVE_MAX`. Only operators create organizations beyond `organizations`.
 */
export const accountLimitDefaults = {
  requestsPerMinute: 300_000,
  keyRequestsPerMinute: 240_000,
  callsAtOnce: 2_000,
  organizations: 0,
  namespaces: 10_000,
  apiKeys: 10_000,
  servers: 20_000,
  serversPerNamespace: 10_000,
  releases: 20_000,
  artifactBytes: 20 * GB,
  connections: 100_000,
  connectionsPerNamespace: 50_000,
  skills: 20_000,
  skillsPerNamespace: 10_000,
  skillBytes: 2 * GB,
  logBytesPerDay: 0,
  livePrograms: 0,
};

export type AccountLimitName = keyof typeof accountLimitDefaults;

export type AccountLimits = Readonly<Record<AccountLimitName, number>>;

export const accountLimitNames = Object.keys(accountLimitDefaults) as AccountLimitName[];

export function isLimitValue(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Parses `name=number,…`. @throws Error whose message follows the name of the setting */
export function parseAccountLimits(text: string): Partial<AccountLimits> {
  const limits = text.split(',').map((part) => {
    const [name = '', value = ''] = part.trim().split('=');
    if (!Object.hasOwn(accountLimitDefaults, name) || !/^\d+$/.test(value) || !isLimitValue(Number(value))) {
      throw new Error(`must be a list of name=number with names of ${accountLimitNames.join(', ')}`);
    }
    return [name, Number(value)];
  });
  return Object.fromEntries(limits) as Partial<AccountLimits>;
}
