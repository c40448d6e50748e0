// With `serve --watch`: reloads the page as soon as it has changed.
const read = async () => {
  const answer = await fetch(location.pathname, { method: "HEAD", headers: { Accept: "text/html" } }).catch(() => undefined);
  return answer?.headers.get("ETag");
};
const shown = await read();
setInterval(async () => {
  const tag = await read();
  if (tag && tag !== shown) location.reload();
}, 500);
