/** Severity: harmless, worth a review, or breaking for callers that work today or rely on today's safety. */
export const changeLevels = ['compatible', 'risky', 'breaking'] as const;
export type ChangeLevel = (typeof changeLevels)[number];

/** Highest level of a list of changes; `none` for an empty one. */
export const contractSummaries = ['none', ...changeLevels] as const;
export type ContractSummary = (typeof contractSummaries)[number];

/** Origin of a comparison: a release that became current, or a rescan of the current one. */
export const contractFinders = ['release', 'rescan'] as const;
export type ContractFinder = (typeof contractFinders)[number];

/** One difference between the contracts of two releases. */
export interface ContractChange {
  /** Kind of change, such as `tool_removed`, `now_required`. */
  kind: string;
  level: ChangeLevel;
  /** The tool; null for a resource or a prompt. */
  tool: string | null;
  /** The place in the tool, `inputSchema.city`, or another item, `prompts.review`. Null for a whole tool. */
  path: string | null;
  /** A sentence shown beside tool and path. */
  message: string;
}

/** The highest level among the changes. */
export function summaryOf(changes: ContractChange[]): ContractSummary {
  return [...changeLevels].reverse().find((level) => changes.some((change) => change.level === level)) ?? 'none';
}
