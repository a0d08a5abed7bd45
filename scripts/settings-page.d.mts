/** @see settings-page.mjs */
export function settingsPage(docs: { name: string; fallback: string | null; doc: string; isSecret: boolean }[]): string;

export function troubleshootPage(parts: Record<string, { fault: string; remedy: string; isFatal?: boolean }[]>): string;
