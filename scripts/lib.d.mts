export function isLong(file: string): boolean;
