import { readdir, readFile } from 'node:fs/promises';

/** A fenced block of a documentation page. */
export interface DocBlock {
  page: string;
  /** Line of the opening fence, from 1. */
  line: number;
  /** Words after the fence: the language, then the mark. */
  info: string;
  text: string;
}

const rootFolder = new URL('../../../', import.meta.url);

/** The pages of the documentation, as paths below the repository: README.md and everything in docs/. */
export async function docPages(): Promise<string[]> {
  const files = await readdir(new URL('docs/', rootFolder), { recursive: true });
  const pages = files.filter((file) => file.endsWith('.md')).sort();
  return ['README.md', ...pages.map((file) => `docs/${file}`)];
}

/** The text of a page. */
export function readPage(page: string): Promise<string> {
  return readFile(new URL(page, rootFolder), 'utf8');
}

/** Every fenced block of a page, in order. Blocks inside a list lose the indentation of their fence. */
export function blocksOf(page: string, text: string): DocBlock[] {
  const blocks: DocBlock[] = [];
  const lines = text.split('\n');
  for (let index = 0; index < lines.length; index++) {
    const opening = /^( *)```(.*)$/.exec(lines[index]);
    if (!opening) continue;
    const [, indent, info] = opening;
    const end = lines.findIndex((line, at) => at > index && line === `${indent}\`\`\``);
    if (end < 0) throw new Error(`${page}:${index + 1}: the block has no closing fence`);
    const body = lines
      .slice(index + 1, end)
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    blocks.push({ page, line: index + 1, info: info.trim(), text: body.join('\n') });
    index = end;
  }
  return blocks;
}

/** Settings that the service of a page's commands needs: `<!-- service: NAME=value NAME=value -->`. */
export function serviceSettings(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/^<!-- service: (.+) -->$/gm)].flatMap(([, list]) => list.split(' '));
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}
