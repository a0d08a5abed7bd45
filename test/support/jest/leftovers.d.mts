export function endAfterFile(end: () => unknown): () => void;
