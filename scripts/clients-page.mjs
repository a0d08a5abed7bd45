/** The address of the example server of the documentation. */
const target = { name: 'everything', url: 'http://127.0.0.1:3000/run/acme--everything', hasLogin: false };

/**
 * docs/guides/clients.md with the snippets of the clients between its marks. JSON is on one line: a page has at most 250 lines.
 *
 * @param page the text of docs/guides/clients.md
 * @param clients those of src/extensions/console-pages/clients/clients.ts
 */
export function clientsPage(page, clients) {
  const blocks = clients.flatMap(({ label, setup }) => {
    const { how, snippet, then } = setup(target);
    if (!snippet) return [];
    const isJson = snippet.language === 'json';
    const text = isJson ? snippet.text.replace(/\n\s*/g, ' ') : snippet.text;
    const fence = isJson ? 'json' : `sh manual needs ${label}`;
    const sentence = `**${label}**: ${how.replace(/:$/, '.')} ${then}`.replace(
      /(?:[~.][\w./~-]*\.json|\$\{\w+\}|SLIPWAY_KEY)(?!`)/g,
      '`$&`',
    );
    return `${sentence}\n\n\`\`\`${fence}\n${text}\n\`\`\`\n`;
  });
  return page.replace(/(<!-- clients:.*-->\n)[^]*(<!-- \/clients -->)/, (_, start, end) =>
    [start, ...blocks, end].join('\n'),
  );
}
