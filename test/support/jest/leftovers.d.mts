export function endAfterTest(end: () => unknown): void;
export function endAfterFile(end: () => unknown): () => void;
