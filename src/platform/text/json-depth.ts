/**
 * True when no value of JSON stands inside of more than `depthMax` others. Works level by level, so that a value too deep
 * for recursive readers (`JSON.stringify`, validators, Postgres) can be told without being one of them.
 */
export function isWithinDepth(value: unknown, depthMax: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) return false;
    level = level.flatMap((one) =>
      typeof one === 'object' && one !== null ? Object.values(one as Record<string, unknown>) : [],
    );
  }
  return true;
}
