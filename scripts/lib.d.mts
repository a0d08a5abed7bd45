export function isLong(file: string): boolean;
export function filesUnder(folder: string): string[];
export function repoPath(file: string): string;
export const root: string;
