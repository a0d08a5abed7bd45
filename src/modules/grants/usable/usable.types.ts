/** In the order in which they are counted. */
export const usableStates = ['needs', 'works', 'broken', 'unused'] as const;
export type UsableState = (typeof usableStates)[number];
