// Registers the tools of the MCP server with WebMCP, in browsers that support it.
const context = document.modelContext ?? navigator.modelContext;

const call = async (method, params = {}) => {
  const response = await fetch('/mcp', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error) throw new Error(error.message);
  return result;
};

if (context?.registerTool) {
  const { tools } = await call('tools/list');
  for (const { name, title, description, inputSchema, annotations } of tools) {
    const execute = (input) => call('tools/call', { name, arguments: input ?? {} });
    context.registerTool({ name, title, description, inputSchema, annotations, execute });
  }
}
