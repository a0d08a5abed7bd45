/**
 * The guides as pages: the Markdown files of the documentation, rendered for browsers with markdown-it, which escapes
 * HTML.
 *
 * - Headings have the anchors of GitHub: `## A team of three` → `#a-team-of-three`.
 * - Marks of the tests are left out: comments, and the words after the language of a code block (```` ```sh test ````).
 * - A link to a file that is not served is text.
 */
import type MarkdownIt from 'markdown-it';
import { lazyRequire } from '../lazy-require.js';
import { Html } from './html.js';

const markdownIt = lazyRequire<typeof MarkdownIt>('markdown-it');

const ABSOLUTE = /^https?:/;

/** The first heading of the file is the heading of the page, and left out here. */
export interface Guide {
  title: string;
  body: Html;
}

/**
 * @param path where the file is served, such as `/docs/guides/teams.md`: its links are relative to it
 * @param isServed returns true for paths that the service serves
 */
export function renderGuide(markdown: string, path: string, isServed: (path: string) => boolean): Guide {
  const renderer = markdownIt()({ html: false });
  const tokens = renderer.parse(markdown.replace(/^<!--[^]*?-->\n/gm, ''), {});
  const title = tokens.findIndex(({ type, tag }) => type === 'heading_open' && tag === 'h1');
  const anchors = new Set<string>();
  tokens.forEach((token, at) => {
    if (token.type === 'heading_open') token.attrSet('id', anchorOf(tokens[at + 1].content, anchors));
    // They scroll on a narrow screen, including by keyboard.
    if (['fence', 'code_block', 'table_open'].includes(token.type)) token.attrSet('tabindex', '0');
    if (token.type === 'fence') token.info = token.info.split(' ')[0];
    const open: boolean[] = [];
    token.children = (token.children ?? []).filter((part) => {
      if (part.type === 'link_open') open.push(isWorking(String(part.attrGet('href')), path, isServed));
      const isKept = !part.type.startsWith('link_') || open.at(-1);
      if (part.type === 'link_close') open.pop();
      return isKept;
    });
  });
  return {
    title: tokens[title + 1]?.content ?? path,
    body: new Html(renderer.renderer.render(tokens.toSpliced(title, title < 0 ? 0 : 3), renderer.options, {})),
  };
}

function anchorOf(heading: string, anchors: Set<string>): string {
  const words = heading.replace(/[^\p{L}\p{N}\s_-]/gu, '').toLowerCase();
  let anchor = words.trim().replaceAll(' ', '-');
  for (let n = 1; anchors.has(anchor); n += 1) anchor = `${words.trim().replaceAll(' ', '-')}-${n}`;
  anchors.add(anchor);
  return anchor;
}

function isWorking(href: string, path: string, isServed: (path: string) => boolean): boolean {
  if (ABSOLUTE.test(href)) return true;
  return isServed(new URL(href, `http://localhost${path}`).pathname);
}
