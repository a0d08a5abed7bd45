/** States, in the order in which rows are counted. */
export const usableStates = ['needs', 'works', 'broken', 'unused'] as const;
export type UsableState = (typeof usableStates)[number];
